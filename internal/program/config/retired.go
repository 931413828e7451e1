package config

import "strings"

// retired lists what earlier versions called by another name. A key has * for the name of an entry, and a flag stands behind its command. A name
// that comes back must leave this list. Without a new name, the key has no effect any more.
var retired = []struct{ old, now string }{
	{"webhook.default.schedule", "webhook.default.backoff"},
	{"webhook.endpoints.*.schedule", "webhook.endpoints.*.backoff"},
	{"endpoints add --schedule", "endpoints add --backoff"},
	{"endpoints edit --schedule", "endpoints edit --backoff"},
	{"rabbitmq.delay_steps", ""},
}

// Renamed returns what a key, a flag or a command of an earlier version is called now; "" if none was called so. Flags stand behind their command, and
// commands do without the name of the program: endpoints add --schedule.
func Renamed(old string) string {
	now, _ := renamed(old, asWritten)
	return now
}

func asWritten(text string) string { return text }

// retiredKey says what became of a key; "" if there was none of that name.
func retiredKey(old string) string { return retirement(renamed(old, asWritten)) }

// retiredVariable does the same for the variable of a key.
func retiredVariable(name string) string {
	now, known := renamed(strings.TrimPrefix(name, Prefix), shout)
	if now != "" {
		now = Prefix + now
	}
	return retirement(now, known)
}

func retirement(now string, known bool) string {
	switch {
	case !known:
		return ""
	case now == "":
		return "has no effect any more: leave it out"
	}
	return "is called " + now + " now"
}

// renamed looks old up among the old names in the given form.
func renamed(old string, form func(string) string) (now string, known bool) {
	for _, r := range retired {
		before, after, named := strings.Cut(r.old, "*")
		rest, begins := strings.CutPrefix(old, form(before))
		entry, ends := strings.CutSuffix(rest, form(after))
		if !begins || !ends || named == (entry == "") {
			continue
		}
		before, after, _ = strings.Cut(r.now, "*")
		return form(before) + entry + form(after), true
	}
	return "", false
}
