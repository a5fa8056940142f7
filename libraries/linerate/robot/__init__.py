"""Robot Framework's side: the keyword libraries, thin. The only room that imports Robot, but for Allure's listener."""
