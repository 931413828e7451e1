package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// server is the broker's process, if it runs on this machine and this user may look at it. The zero value is unknown.
type server struct {
	pid int
	// children says that the process works through others, as PostgreSQL does.
	children bool
}

// findServer returns the process that listens on port.
func findServer(port string) server {
	n, err := strconv.Atoi(port)
	if err != nil {
		return server{}
	}
	var sockets []string
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for _, l := range strings.Split(string(text), "\n") {
			const listen = "0A"
			if f := strings.Fields(l); len(f) > 9 && f[3] == listen && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", n)) {
				sockets = append(sockets, "socket:["+f[9]+"]")
			}
		}
	}
	files, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return server{}
	}
	for _, file := range files {
		target, err := os.Readlink(file)
		if err != nil {
			continue
		}
		for _, s := range sockets {
			if s == target {
				pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
				return server{pid: pid}
			}
		}
	}
	return server{}
}

func (s server) known() bool { return s.pid != 0 }

// cpu is what the process has used so far; zero if it is unknown.
func (s server) cpu() time.Duration {
	if !s.known() {
		return 0
	}
	own := readStat(strconv.Itoa(s.pid))
	ticks := own.user + own.system
	if s.children {
		ticks += own.ended
		dirs, err := filepath.Glob("/proc/[0-9]*")
		if err != nil {
			return 0
		}
		for _, dir := range dirs {
			if p := readStat(filepath.Base(dir)); p.parent == s.pid {
				ticks += p.user + p.system
			}
		}
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 wherever Go runs
	return time.Duration(ticks) * tick
}

// stat is what /proc says of a process, in ticks: its own use, and that of its children that have ended.
type stat struct{ parent, user, system, ended int }

func readStat(pid string) (s stat) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return stat{}
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the command before it may hold anything
	f := strings.Fields(rest)
	if len(f) < 15 {
		return stat{}
	}
	field := func(i int) int {
		n, _ := strconv.Atoi(f[i])
		return n
	}
	return stat{parent: field(1), user: field(11), system: field(12), ended: field(13) + field(14)}
}
