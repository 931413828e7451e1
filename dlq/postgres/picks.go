package postgres

import "sync"

// picks remembers the entries that the last search by JSON found and nobody reserved yet. They are checked again when they are taken,
// except for their payload, which never changes under a number.
type picks struct {
	mu     sync.Mutex
	filter string
	seqs   []int64
}

// takeAll takes what is there for a filter.
func (p *picks) takeAll(filter string) []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filter != filter {
		return nil
	}
	seqs := p.seqs
	p.seqs = nil
	return seqs
}

func (p *picks) keep(filter string, seqs []int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filter, p.seqs = filter, seqs
}
