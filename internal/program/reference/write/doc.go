// Command write brings the generated tables of docs up to date and prints the pages that it has changed. It takes no arguments: go generate
// runs it in the directory of package reference, as make docs does.
package main
