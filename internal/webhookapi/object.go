package webhookapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// object is a JSON object whose values are not read yet. encoding/json alone would take a field for another one that differs in case, the last
// of two, and bytes that are no UTF-8.
type object map[string]json.RawMessage

// parseObject reads one object and nothing behind it.
func parseObject(text []byte) (object, error) {
	if !utf8.Valid(text) {
		return nil, invalid("", "the body is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	o, err := readObject(dec)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, invalid("", "something stands behind the JSON object: send one object")
	}
	return o, nil
}

func readObject(dec *json.Decoder) (object, error) {
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, notJSON(dec, err)
	}
	o := object{}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, notJSON(dec, err)
		}
		if _, twice := o[name]; twice {
			return nil, invalid(name, "is given twice")
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, notJSON(dec, err)
		}
		o[name] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, notJSON(dec, err)
	}
	return o, nil
}

// notJSON says where, and not what: the body may hold secrets.
func notJSON(dec *json.Decoder, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return invalid("", fmt.Sprintf("the body is not JSON: wrong at byte %d", syntax.Offset))
	}
	if err != nil {
		return invalid("", fmt.Sprintf("the body is not complete JSON: it ends at byte %d", dec.InputOffset()))
	}
	return invalid("", "the body must be a JSON object")
}

// reader takes the value of one field. Null means that the field is to have its default.
type reader func(value json.RawMessage) error

var null = []byte("null")

// renamed are fields by the name that earlier versions gave them.
var renamed = map[string]string{"schedule": "backoff"}

// read hands each field to its reader. All faults are told at once.
func (o object) read(readers map[string]reader) error {
	var faults []FieldError
	for _, name := range slices.Sorted(maps.Keys(o)) {
		read, known := readers[name]
		if now, old := renamed[name]; old && !known && readers[now] != nil {
			faults = append(faults, FieldError{name, "is called " + now + " now: use that name"})
			continue
		}
		if !known {
			faults = append(faults, FieldError{name, "is unknown: fields are " + strings.Join(slices.Sorted(maps.Keys(readers)), ", ")})
			continue
		}
		err := read(o[name])
		var p *Problem
		switch {
		case err == nil:
		case errors.As(err, &p) && len(p.Errors) > 0:
			for _, f := range p.Errors {
				faults = append(faults, FieldError{strings.TrimSuffix(name+"."+f.Field, "."), f.Detail})
			}
		default:
			faults = append(faults, FieldError{name, err.Error()})
		}
	}
	if len(faults) > 0 {
		return invalidFields(faults...)
	}
	return nil
}

// into returns the reader that puts a value of its JSON type into to.
func into[T string | bool | int | float64 | []string](to *T) reader {
	return func(value json.RawMessage) error {
		var v T
		if bytes.Equal(value, null) {
			*to = v
			return nil
		}
		if err := json.Unmarshal(value, &v); err != nil {
			return fmt.Errorf("must be %s", kindOf(reflect.TypeFor[T]()))
		}
		*to = v
		return nil
	}
}

func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	default:
		return "a list of texts"
	}
}

// parsed returns the reader of a text that parse understands.
func parsed[T any](to *T, parse func(string) (T, error)) reader {
	return func(value json.RawMessage) error {
		var text string
		if err := into(&text)(value); err != nil {
			return err
		}
		var v T
		if text != "" {
			var err error
			if v, err = parse(text); err != nil {
				return err
			}
		}
		*to = v
		return nil
	}
}

// merged returns the reader of a map of texts that is merged into the one that is there: null for a name takes it out, null for all empties it.
// same says that names are the same; a name that is there in another spelling is replaced.
func merged(to *map[string]string, same func(a, b string) bool) reader {
	return func(value json.RawMessage) error {
		if bytes.Equal(value, null) {
			*to = nil
			return nil
		}
		o, err := parseObject(value)
		if err != nil {
			return errors.New("must be an object of texts, each name once")
		}
		out := maps.Clone(*to)
		if out == nil {
			out = make(map[string]string, len(o))
		}
		for _, name := range slices.Sorted(maps.Keys(o)) {
			maps.DeleteFunc(out, func(there, _ string) bool { return same(there, name) })
			if bytes.Equal(o[name], null) {
				continue
			}
			var text string
			if err := into(&text)(o[name]); err != nil {
				return invalid(name, err.Error())
			}
			out[name] = text
		}
		*to = out
		return nil
	}
}
