"""Parts of the script that draws the pictures of the README and of the site."""
