package recipes

import "github.com/caisson-go/caisson/worker"

// Letter is what is sent now.
type Letter struct {
	To []string `json:"to"`
}

// LetterV1 is what jobs hold that wait since before the deploy.
type LetterV1 struct {
	To string `json:"to"`
}

// SendLetter was called mail.send once. Jobs of that name still find it.
var (
	SendLetter   = worker.Kind[Letter]{Name: "letter.send", Aliases: []string{"mail.send"}, Version: 2}
	SendLetterV1 = worker.Kind[LetterV1]{Name: "letter.send", Aliases: []string{"mail.send"}}
)
