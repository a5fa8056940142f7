"""The keyword libraries of Robot Framework. Only this room and Allure's listener import Robot."""
