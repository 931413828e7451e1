package main

import (
	"errors"
	"flag"
	"os"
	"runtime"
	"runtime/pprof"
)

// profiles are files that a run's profiles go to; empty means none.
type profiles struct{ cpu, allocs, mutex, block string }

func (p *profiles) flags() {
	flag.StringVar(&p.cpu, "cpuprofile", "", "write a CPU profile to this file")
	flag.StringVar(&p.allocs, "allocprofile", "", "write a profile of allocations to this file")
	flag.StringVar(&p.mutex, "mutexprofile", "", "write a profile of contended locks to this file")
	flag.StringVar(&p.block, "blockprofile", "", "write a profile of waiting to this file")
}

// start begins what was asked for. The function it returns writes the files.
func (p *profiles) start() (stop func() error, err error) {
	var cpu *os.File
	if p.cpu != "" {
		if cpu, err = os.Create(p.cpu); err != nil {
			return nil, err
		}
		if err := pprof.StartCPUProfile(cpu); err != nil {
			return nil, err
		}
	}
	if p.mutex != "" {
		runtime.SetMutexProfileFraction(5)
	}
	if p.block != "" {
		runtime.SetBlockProfileRate(10_000)
	}
	return func() error {
		var errs []error
		if cpu != nil {
			pprof.StopCPUProfile()
			errs = append(errs, cpu.Close())
		}
		errs = append(errs, write("allocs", p.allocs), write("mutex", p.mutex), write("block", p.block))
		return errors.Join(errs...)
	}, nil
}

func write(profile, path string) error {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup(profile).WriteTo(f, 0), f.Close())
}
