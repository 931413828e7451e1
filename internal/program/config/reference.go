package config

import (
	"fmt"
	"strings"
)

// Reference returns docs/configuration.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# Configuration

Generated from the fields of ` + "`internal/program/config`" + `; a test keeps it up to date.

Values come from four sources, each stronger than the one before: defaults, the file (YAML), variables, flags. ` + "`" + FileVariable + "`" + ` names
the file where no flag does.

- **Durations** need a unit: ` + "`30s`, `5m`, `1h30m`, `14d`" + `. A bare number is refused.
- **Lists** are YAML lists, or values separated by commas or spaces, also in variables: ` + "`a,b`, `a b`, `a, b`" + `. A stronger source replaces the
  whole list.
- **Variables** are ` + "`" + Prefix + "`" + ` and the key in upper case, with ` + "`_`" + ` for everything that is no letter or digit: ` + "`" + variable(path{"admin", "password"}) + "`" + ` for
  ` + "`admin.password`" + `. They reach an entry of the file by its name (` + "`" + variable(path{"kinds", "email.send", "timeout"}) + "`" + ` for kind ` + "`email.send`" + `); an entry
  that the file does not have is made, with its name in lower case, and a kind is found by it all the same. **An empty variable is the same as none.** A variable that matches no key is
  named in a warning.
- **Unknown keys, keys given twice and values out of range** are refused, all at once, each with its line or variable.
- **` + "`yes`, `no`, `on`, `off`" + ` and numbers** are not text: put them in quotes where text is meant. The same goes for values with a comma inside ` + "`{}` or `[]`" + `.

| key | type | default | meaning |
|---|---|---|---|
`)
	referenceRows(&b, schema, nil)
	return b.String()
}

func referenceRows(b *strings.Builder, nodes []*node, at path) {
	for _, n := range nodes {
		here := at.with(n.key)
		switch {
		case n.leaf != nil:
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", here, n.leaf.typeName(), n.leaf.shownDefault(), n.doc)
		case n.named:
			fmt.Fprintf(b, "| `%s.<name>` | section | | %s |\n", here, n.doc)
			referenceRows(b, n.section, here.with("<name>"))
		default:
			referenceRows(b, n.section, here)
		}
	}
}

func (l *leaf) typeName() string {
	name := map[string]string{
		"time.Duration": "duration", "schedule.Policy": "backoff", "config.Secret": "secret", "[]config.Secret": "list of secrets",
		"config.SecretURL": "URL", "[]config.SecretURL": "list of URLs", "map[string]config.Secret": "map", "[]string": "list", "[]int": "list of numbers", "[]config.Queue": "list of queues",
		"int": "whole number", "float64": "number", "bool": "true or false", "string": "text",
	}[l.typ.String()]
	switch {
	case len(l.enum) > 0:
		return "`" + strings.Join(l.enum, "`, `") + "`"
	case l.min != "" && l.max != "":
		return name + ", " + l.min + " to " + l.max
	case l.min != "":
		return name + ", at least " + l.min
	}
	return name
}

func (l *leaf) shownDefault() string {
	if l.def == "" {
		return ""
	}
	return "`" + l.def + "`"
}
