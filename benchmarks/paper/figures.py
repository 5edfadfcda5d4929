"""The paper's own figures: seconds, sizes of reducts and speed-ups."""

from __future__ import annotations

#: dataset → its name in the paper
TITLES = {
    "mushroom": "Mushroom",
    "tic-tac-toe": "Tic-tac-toe",
    "dermatology": "Dermatology",
    "kr-vs-kp": "Kr-vs-kp",
    "breast": "Breast-cancer-w.",
    "backup-large": "Backup-large.test",
    "shuttle": "Shuttle",
    "letter": "Letter",
    "ticdata2000": "Ticdata2000",
}

#: measure → dataset → seconds of HAR, FSPA and PLAR (8 cores, level 8), and the size of the reduct
EFFECTIVENESS: dict[str, dict[str, tuple[float, float, float, int]]] = {
    "PR": {
        "mushroom": (24.875, 20.453, 5.698, 3),
        "tic-tac-toe": (0.359, 0.313, 4.650, 8),
        "dermatology": (0.844, 0.438, 10.420, 10),
        "kr-vs-kp": (28.031, 21.578, 5.632, 29),
        "breast": (0.125, 0.094, 3.465, 4),
        "backup-large": (0.656, 0.422, 9.621, 10),
        "shuttle": (906.063, 712.250, 3.964, 4),
        "letter": (282.641, 112.625, 7.938, 11),
        "ticdata2000": (886.453, 296.375, 55.963, 24),
    },
    "SCE": {
        "mushroom": (162.641, 159.594, 6.575, 4),
        "tic-tac-toe": (4.500, 3.109, 4.771, 8),
        "dermatology": (5.313, 1.984, 13.451, 11),
        "kr-vs-kp": (149.625, 105.984, 5.547, 29),
        "breast": (1.344, 0.844, 3.667, 4),
        "backup-large": (4.359, 1.766, 10.894, 10),
        "shuttle": (12665.391, 10153.172, 4.065, 4),
        "letter": (7015.703, 2740.250, 7.953, 11),
        "ticdata2000": (8153.656, 1043.891, 53.953, 24),
    },
    "LCE": {
        "mushroom": (300.219, 294.000, 6.728, 4),
        "tic-tac-toe": (8.734, 5.781, 4.560, 8),
        "dermatology": (10.453, 3.750, 13.073, 10),
        "kr-vs-kp": (1156.125, 191.125, 5.275, 29),
        "breast": (3.125, 1.672, 3.642, 5),
        "backup-large": (9.844, 3.219, 10.016, 10),
        "shuttle": (24883.625, 20228.391, 3.888, 4),
        "letter": (15176.766, 5558.781, 7.767, 12),
        "ticdata2000": (27962.625, 1805.563, 54.684, 24),
    },
    "CCE": {
        "mushroom": (166.922, 159.641, 3.278, 4),
        "tic-tac-toe": (6.766, 3.141, 4.822, 8),
        "dermatology": (5.828, 2.266, 11.433, 10),
        "kr-vs-kp": (149.750, 105.750, 12.470, 29),
        "breast": (1.359, 0.891, 2.323, 4),
        "backup-large": (4.578, 1.984, 3.373, 9),
        "shuttle": (13718.875, 10948.922, 3.850, 4),
        "letter": (7118.266, 2610.359, 8.110, 11),
        "ticdata2000": (8262.047, 1048.578, 59.114, 24),
    },
}

#: dataset → measure → speed-up of SparkAR and PLAR over HadoopAR, 16 cores
DISTRIBUTED: dict[str, dict[str, tuple[float, float]]] = {
    "KDD99": {"PR": (6.39, 381.89), "SCE": (6.08, 414.85), "LCE": (7.14, 502.87), "CCE": (6.75, 480.16)},
    "WEKA15360": {"PR": (3.24, 75.88), "SCE": (2.48, 57.11), "LCE": (2.55, 65.71), "CCE": (2.63, 59.57)},
}

#: measure → seconds of one iteration on 128 and on 32 cores
SDSS = {"PR": (7432, 24274), "SCE": (7312, 24181), "LCE": (7207, 24372), "CCE": (7383, 24295)}

#: model parallelism level → seconds of five iterations, SCE, 64 cores
GISETTE: dict[int, tuple[int, ...]] = {
    1: (6262, 5975, 6261, 6115, 6194),
    2: (3080, 2982, 3059, 3017, 3155),
    4: (1570, 1480, 1497, 1484, 1512),
    8: (885, 873, 869, 877, 885),
    16: (472, 465, 470, 468, 465),
    32: (350, 343, 344, 344, 348),
    64: (371, 370, 370, 369, 375),
}
