package endpoints

import "fmt"

// Unreadable is how many endpoints of the registry cannot be read as they are now, for want of a key for example. Their deliveries wait.
func (m *Mirror) Unreadable() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n := 0
	for _, one := range m.byID {
		if one.err != nil {
			n++
		}
	}
	return n
}

// Usable returns nil unless the registry has endpoints and none of them can be read.
func (m *Mirror) Usable() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var last error
	for _, one := range m.byID {
		if one.err == nil {
			return nil
		}
		last = one.err
	}
	if last != nil {
		return fmt.Errorf("none of %d webhook endpoints can be read, their deliveries wait: %w", len(m.byID), last)
	}
	return nil
}
