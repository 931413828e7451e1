package replay

// Report tells how far a replay came.
type Report struct {
	// ID is the replay's.
	ID string `json:"id"`
	// DryRun says that nothing was changed: Replayed is what would have been.
	DryRun bool `json:"dry_run,omitempty"`
	// Matched is how many entries matched at the start.
	Matched int `json:"matched"`
	// Replayed is how many the queue confirmed. They are marked, unless the error says otherwise.
	Replayed int `json:"replayed"`
	// Failed is how many the queue did not confirm. They stay dead. If only the confirmation was lost, a later replay publishes a duplicate,
	// which the job's key makes harmless.
	Failed int `json:"failed"`
	// Refused is how many can never be published as they are. They stay dead.
	Refused int `json:"refused"`
	// Completed is how many were left out because their key completed meanwhile. They stay dead; their work is done.
	Completed int `json:"completed,omitempty"`
	// Forced is how many of Replayed run again on request although their key is completed.
	Forced int `json:"forced,omitempty"`
	// Forgotten is how many were tried although claims cannot tell whether they completed: they died longer ago than keys are remembered,
	// have no known key, or there are no claims.
	Forgotten int `json:"forgotten,omitempty"`
	// Held is how many wait for their destination's breaker, by destination in HeldFor. At the end they are those that stayed dead.
	Held    int            `json:"held,omitempty"`
	HeldFor map[string]int `json:"held_for,omitempty"`
	// Unreported is why nobody knows which breakers are open.
	Unreported string `json:"unreported,omitempty"`
	// Queues and Destinations say how many jobs a dry run would send where.
	Queues       map[string]int `json:"queues,omitempty"`
	Destinations map[string]int `json:"destinations,omitempty"`
	// Left is how many still match at the end and were not tried: not reached, or reserved by another replay.
	Left int `json:"left"`
	// Canary is what became of the first jobs.
	Canary CanaryReport `json:"canary,omitzero"`
	// Problems says why entries failed, were refused or left out, for the first 100.
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is why one entry was not replayed.
type Problem struct {
	ID      string `json:"id"`
	Refused bool   `json:"refused,omitempty"`
	// Completed says that the entry was left out because its work is done.
	Completed bool   `json:"completed,omitempty"`
	Error     string `json:"error"`
}

// maxProblems is the most problems that a report lists.
const maxProblems = 100
