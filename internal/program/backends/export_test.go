package backends

// OpenWithin is OpenSoon with another patience.
var OpenWithin = openWithin
