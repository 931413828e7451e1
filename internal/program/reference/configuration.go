package reference

import (
	"fmt"
	"strings"

	"github.com/caisson-go/caisson/internal/program/config"
)

// configurationKeys lists all keys, those of one section under a heading of its name.
func configurationKeys() (string, error) {
	var b strings.Builder
	b.WriteString("\n")
	var top []config.Key
	var sections []string
	in := make(map[string][]config.Key)
	for _, k := range config.Keys() {
		section, _, nested := strings.Cut(k.Name, ".")
		if !nested {
			top = append(top, k)
			continue
		}
		if in[section] == nil {
			sections = append(sections, section)
		}
		in[section] = append(in[section], k)
	}
	keyRows(&b, "General", top)
	for _, section := range sections {
		keyRows(&b, section, in[section])
	}
	return b.String(), nil
}

func keyRows(b *strings.Builder, heading string, keys []config.Key) {
	fmt.Fprintf(b, "## %s\n\n| key | type | default | meaning |\n|---|---|---|---|\n", heading)
	for _, k := range keys {
		def := ""
		if k.Default != "" {
			def = "`" + k.Default + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", k.Name, k.Type, def, k.Doc)
	}
	b.WriteString("\n")
}
