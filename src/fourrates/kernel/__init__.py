"""The compiled room: arrays and numbers only. Labels, names, files and messages are others' business."""
