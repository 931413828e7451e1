package main

import (
	"context"
	"fmt"

	"github.com/caisson-go/caisson/app"
	"github.com/caisson-go/caisson/worker"
)

// Greeting is the job's payload.
type Greeting struct {
	Name string `json:"name"`
}

// Greet is shared by whoever enqueues and whoever handles.
var Greet = worker.Kind[Greeting]{Name: "greet"}

func main() { app.Main(register) }

func register(r *worker.Registry) error {
	worker.Handle(r, Greet, greet)
	return nil
}

func greet(_ context.Context, g Greeting) error {
	fmt.Println("hello,", g.Name)
	return nil
}
