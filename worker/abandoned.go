package worker

import (
	"sort"
	"sync"
)

// abandonedJobs is the set of jobs whose handlers were abandoned and have not returned.
type abandonedJobs struct {
	mu   sync.Mutex
	jobs map[*Job]struct{}
}

func (s *abandonedJobs) add(j *Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs == nil {
		s.jobs = make(map[*Job]struct{})
	}
	s.jobs[j] = struct{}{}
}

func (s *abandonedJobs) remove(j *Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.jobs, j)
}

func (s *abandonedJobs) list() []*Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*Job
	for j := range s.jobs {
		list = append(list, j)
	}
	sort.Slice(list, func(a, b int) bool { return list[a].ID < list[b].ID })
	return list
}
