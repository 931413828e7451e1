package backends

// OpenWithin is OpenSoon with another wait.
var OpenWithin = openWithin
