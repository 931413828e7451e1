package config

import (
	"errors"
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// queueFromMapping reads one queue that is written as a map.
func queueFromMapping(n *yaml.Node) (Queue, error) {
	q := Queue{Weight: 1}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i].Value, resolve(n.Content[i+1])
		if seen[key] {
			return Queue{}, fmt.Errorf("%s is given twice", key)
		}
		seen[key] = true
		if value.Kind != yaml.ScalarNode {
			return Queue{}, fmt.Errorf("%s is not a single value", key)
		}
		if err := q.set(key, value); err != nil {
			return Queue{}, err
		}
	}
	return q, nil
}

// set reads the value of one key.
func (q *Queue) set(key string, value *yaml.Node) (err error) {
	texts := map[string]*string{"name": &q.Name, "default_kind": &q.DefaultKind, "on_dead": &q.OnDead}
	if to := texts[key]; to != nil {
		if err := refuseText(value, false); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		*to = value.Value
		return nil
	}
	switch key {
	case "weight":
		if q.Weight, err = strconv.Atoi(value.Value); err != nil { // YAML itself would take 1.5 for 1
			return fmt.Errorf("weight: %q is not a whole number", value.Value)
		}
	case "priority":
		if q.Priority, err = strconv.Atoi(value.Value); err != nil {
			return fmt.Errorf("priority: %q is not a whole number", value.Value)
		}
	case "class":
		if _, err := strconv.ParseFloat(value.Value, 64); err == nil {
			return fmt.Errorf("class: %s is a number, and classes are called critical_plus, critical, sheddable_plus, sheddable", value.Value)
		}
		return errors.New("class: this version takes no class: leave it out, and order queues by priority")
	case "unwrap_sns":
		if value.Tag != "!!bool" || value.Value != "true" && value.Value != "false" {
			return fmt.Errorf("unwrap_sns: %q is neither true nor false", value.Value)
		}
		q.UnwrapSNS = value.Value == "true"
	default:
		return fmt.Errorf("%q is unknown: %s", key, didYouMean(key, []string{"name", "weight", "priority", "default_kind", "on_dead", "unwrap_sns"}))
	}
	return nil
}
