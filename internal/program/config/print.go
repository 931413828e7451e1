package config

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/caisson-go/caisson/schedule"
)

// Origin is the source of a value.
type Origin string

// The origins, weakest first.
const (
	// Inherited values of an entry come from the section for all entries.
	Inherited Origin = "inherited"
	Default   Origin = "default"
	File      Origin = "file"
	Env       Origin = "env"
	Flag      Origin = "flag"
)

// Setting is one key of the effective configuration.
type Setting struct {
	// Key is the dotted path.
	Key string `json:"key"`
	// Value is the value as the file would spell it, secrets masked; "" if unset.
	Value  string `json:"value"`
	Origin Origin `json:"origin"`
	// Where is the file and line, the variable, or the section that it is inherited from.
	Where string `json:"where,omitempty"`

	path path
}

// Settings returns every key with its value and origin, in the order of the reference. Secrets are masked.
func (c *Config) Settings() []Setting { return slices.Clone(c.settings) }

func (s *setting) public() Setting {
	return Setting{Key: s.path.String(), Value: show(s.value), Origin: s.origin, Where: s.where, path: s.path}
}

// Print writes the configuration as YAML with each value's origin beside it. Secrets are masked; unset keys are left out.
func (c *Config) Print(w io.Writer) error {
	var b strings.Builder
	var last path
	for _, s := range c.settings {
		if s.Value == "" {
			continue
		}
		common := 0
		for common < len(last)-1 && common < len(s.path)-1 && last[common] == s.path[common] {
			common++
		}
		for i := common; i < len(s.path)-1; i++ {
			fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", i), quote(s.path[i]))
		}
		origin := string(s.Origin)
		if s.Where != "" && s.Where != origin {
			origin += ": " + s.Where
		}
		line := fmt.Sprintf("%s%s: %s", strings.Repeat("  ", len(s.path)-1), s.path[len(s.path)-1], s.Value)
		fmt.Fprintf(&b, "%-48s # %s\n", line, strings.Map(oneLine, origin))
		last = s.path
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// oneLine keeps a comment on its line.
func oneLine(r rune) rune {
	if r < ' ' {
		return ' '
	}
	return r
}

// show spells a value as YAML in one line, secrets masked. It returns "" for what is unset.
func show(v any) string {
	if v == nil || reflect.ValueOf(v).IsZero() && reflect.TypeOf(v).Kind() == reflect.Struct {
		return ""
	}
	switch v := v.(type) {
	case time.Duration:
		return schedule.FormatDuration(v)
	case int:
		return strconv.Itoa(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	case []int:
		return showList(v, strconv.Itoa)
	case []string:
		return showList(v, quote)
	case []Secret:
		return showList(v, func(s Secret) string { return quote(s.String()) })
	case []SecretURL:
		return showList(v, func(u SecretURL) string { return quote(u.String()) })
	case []Queue:
		return showList(v, showQueue)
	case map[string]Secret:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, quote(name)+": "+quote(mask))
		}
		slices.Sort(names)
		return "{" + strings.Join(names, ", ") + "}"
	case fmt.Stringer:
		return quote(v.String())
	case string:
		return quote(v)
	}
	return fmt.Sprint(v)
}

func showList[T any](items []T, one func(T) string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = one(item)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func showQueue(q Queue) string {
	s := fmt.Sprintf("{name: %s, weight: %d", quote(q.Name), q.Weight)
	if q.Priority != 0 {
		s += fmt.Sprintf(", priority: %d", q.Priority)
	}
	if q.DefaultKind != "" {
		s += ", default_kind: " + quote(q.DefaultKind)
	}
	if q.OnDead != "" {
		s += ", on_dead: " + quote(q.OnDead)
	}
	if q.UnwrapSNS {
		s += ", unwrap_sns: true"
	}
	return s + "}"
}

// quote puts text in quotes where YAML would not read it back as the same text.
func quote(text string) string {
	plain := text != ""
	for i := range len(text) {
		c := text[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789._-/", rune(c))) {
			plain = false
			break
		}
	}
	if plain && refuseText(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}, false) == nil {
		return text
	}
	return strconv.Quote(text)
}
