package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-go/caisson/schedule"
)

// fromText converts the text of a variable, a flag, a default or a scalar of the file to the leaf's type, and checks its bounds.
func (l *leaf) fromText(text string) (any, error) {
	v, err := l.parse(text)
	if err != nil {
		return nil, err
	}
	return v, l.check(v)
}

// parse converts without looking at bounds.
func (l *leaf) parse(text string) (any, error) {
	switch l.typ {
	case durationType:
		return schedule.ParseDuration(text)
	case policyType:
		return schedule.ParseBackoff(text)
	case secretType:
		return Secret{text}, nil
	case urlType:
		return SecretURL{strings.TrimSpace(text)}, nil
	case urlsType:
		return urlsOf(split(text)), nil
	case stringsType:
		return split(text), nil
	case secretsType:
		var secrets []Secret
		for _, s := range split(text) {
			secrets = append(secrets, Secret{s})
		}
		return secrets, nil
	case intsType:
		return parseInts(split(text))
	case queuesType:
		return parseQueues(split(text))
	case headersType:
		return parseHeaders(text)
	}
	switch l.typ.Kind() {
	case reflect.Int:
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number", text)
		}
		return n, nil
	case reflect.Float64:
		f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || f != f || f-f != 0 { // NaN and infinities parse
			return nil, fmt.Errorf("%q is not a number", text)
		}
		return f, nil
	case reflect.Bool:
		switch strings.TrimSpace(text) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return nil, fmt.Errorf("%q is neither true nor false", text)
	default:
		return text, nil
	}
}

// check holds v against the leaf's bounds.
func (l *leaf) check(v any) error {
	switch v := v.(type) {
	case string:
		if len(l.enum) > 0 && !slices.Contains(l.enum, v) {
			return fmt.Errorf("%q is not one of %s", v, strings.Join(l.enum, ", "))
		}
	case time.Duration:
		return within(v, l.min, l.max, schedule.FormatDuration, schedule.ParseDuration)
	case int:
		return within(v, l.min, l.max, strconv.Itoa, strconv.Atoi)
	case float64:
		parse := func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }
		return within(v, l.min, l.max, func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }, parse)
	}
	return nil
}

// within compares v with bounds given as tags.
func within[T int | float64 | time.Duration](v T, low, high string, format func(T) string, parse func(string) (T, error)) error {
	if low != "" {
		if bound, err := parse(low); err != nil || v < bound {
			return errors.Join(err, fmt.Errorf("%s is too little: the least is %s", format(v), low))
		}
	}
	if high != "" {
		if bound, err := parse(high); err != nil || v > bound {
			return errors.Join(err, fmt.Errorf("%s is too much: the most is %s", format(v), high))
		}
	}
	return nil
}

// split cuts a list at commas and white space, any number of them.
func split(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool {
		return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r'
	})
}

func urlsOf(texts []string) []SecretURL {
	var urls []SecretURL
	for _, t := range texts {
		urls = append(urls, SecretURL{strings.TrimSpace(t)})
	}
	return urls
}

func parseInts(items []string) ([]int, error) {
	var ns []int
	for _, item := range items {
		n, err := strconv.Atoi(item)
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number", item)
		}
		ns = append(ns, n)
	}
	return ns, nil
}

func parseQueues(items []string) ([]Queue, error) {
	var qs []Queue
	for _, item := range items {
		q, err := parseQueue(item)
		if err != nil {
			return nil, err
		}
		qs = append(qs, q)
	}
	return qs, nil
}

// parseQueue reads name or name=weight.
func parseQueue(item string) (Queue, error) {
	name, weight, weighted := strings.Cut(item, "=")
	q := Queue{Name: name, Weight: 1}
	if weighted {
		n, err := strconv.Atoi(weight)
		if err != nil {
			return Queue{}, fmt.Errorf("queue %q: the weight %q is not a whole number: write name or name=weight", item, weight)
		}
		q.Weight = n
	}
	return q, nil
}

// parseHeaders reads one "Name: value" a line. Values are never part of an error.
func parseHeaders(text string) (map[string]Secret, error) {
	headers := map[string]Secret{}
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, errors.New("a line has no colon: write one Name: value per line")
		}
		headers[strings.TrimSpace(name)] = Secret{strings.TrimSpace(value)}
	}
	return headers, nil
}
