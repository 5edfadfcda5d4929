// The theme searches in a Web Worker, which browsers do not start for a page that was opened from disk.
// There a hidden frame takes its place: same script, same messages.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      this.ready = new Promise((resolve) => {
        const script = this.inside.document.createElement("script")
        script.src = url
        script.onload = resolve
        this.inside.document.body.append(script)
      })
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) })))
    }
  }
  window.Worker = window.IFrameWorker
}
