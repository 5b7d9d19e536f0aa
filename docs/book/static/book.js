// Pages opened from a disk may not read each other, so there search shows titles without the text around the word.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
