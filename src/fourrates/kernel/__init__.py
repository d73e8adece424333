"""The compiled room, for arrays and numbers only. Labels, names, files and messages are others' business."""
