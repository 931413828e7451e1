package main

import (
	"fmt"
	"os"

	"github.com/caisson-go/caisson/internal/program/reference"
)

func main() {
	changed, err := reference.Update("../../../docs")
	for _, page := range changed {
		fmt.Println("docs/" + page)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
