package config

import "strings"

// retired lists what earlier versions called by another name. A key has * for the name of an entry, and a flag stands behind its command. A name
// that comes back must leave this list.
var retired = []struct{ old, now string }{
	{"webhook.default.schedule", "webhook.default.backoff"},
	{"webhook.endpoints.*.schedule", "webhook.endpoints.*.backoff"},
	{"endpoints add --schedule", "endpoints add --backoff"},
	{"endpoints edit --schedule", "endpoints edit --backoff"},
}

// Renamed returns what a key, a flag or a command of an earlier version is called now; "" if none was called so. Flags stand behind their command, and
// commands do without the name of the program: endpoints add --schedule.
func Renamed(old string) string {
	return renamed(old, func(text string) string { return text })
}

// renamedVariable does the same for the variable of a key.
func renamedVariable(name string) string {
	if now := renamed(strings.TrimPrefix(name, Prefix), shout); now != "" {
		return Prefix + now
	}
	return ""
}

// renamed looks old up among the old names in the given form.
func renamed(old string, form func(string) string) string {
	for _, r := range retired {
		before, after, named := strings.Cut(r.old, "*")
		rest, begins := strings.CutPrefix(old, form(before))
		entry, ends := strings.CutSuffix(rest, form(after))
		if !begins || !ends || named == (entry == "") {
			continue
		}
		before, after, _ = strings.Cut(r.now, "*")
		return form(before) + entry + form(after)
	}
	return ""
}
