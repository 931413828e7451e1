package receivers

import (
	"os"
	"strings"
	"testing"
)

// The guide quotes the receivers as they are run here.
func TestGuideQuotesTheReceivers(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guide-webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	for language, name := range map[string]string{"go": "golang/main.go", "python": "python/receiver.py", "js": "node/receiver.js"} {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(guide), "\n```"+language+"\n"+string(source)+"```\n") {
			t.Errorf("docs/guide-webhooks.md does not quote examples/receivers/%s as it is", name)
		}
	}
}
