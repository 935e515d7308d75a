package controlplane

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// Ports come from below the range from which kernels pick the source port of an
// outgoing connection (32768 and up on Linux, 49152 on macOS). Within it a client
// that keeps dialling a stopped server can be given that server's own port as its
// source, connect to itself, and keep the server from coming back.
const (
	firstPort = 20000
	lastPort  = 21999
)

// portSet is a number of ports that this process holds until release.
type portSet struct {
	ports []int
	locks []*os.File
}

// reservePorts finds n free ports of 127.0.0.1 and keeps other control planes of
// this user from choosing them, also while nothing listens on them. The lock
// files in dir stay behind, empty: removing one would let two processes lock it.
func reservePorts(dir string, n int) (*portSet, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("reserve ports: %w", err)
	}
	s := &portSet{}
	for _, offset := range rand.Perm(lastPort - firstPort + 1) {
		if len(s.ports) == n {
			return s, nil
		}
		port := firstPort + offset
		lock, err := tryLock(filepath.Join(dir, strconv.Itoa(port)))
		if err != nil {
			s.release()
			return nil, fmt.Errorf("reserve ports: %w", err)
		}
		if lock == nil {
			continue
		}
		if !isFree(port) {
			lock.Close()
			continue
		}
		s.ports, s.locks = append(s.ports, port), append(s.locks, lock)
	}
	s.release()
	return nil, fmt.Errorf("reserve ports: fewer than %d of 127.0.0.1:%d to %d are free; end what holds them", n, firstPort, lastPort)
}

func (s *portSet) release() {
	if s == nil {
		return
	}
	for _, l := range s.locks {
		l.Close()
	}
	s.locks = nil
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return false
	}
	l.Close()
	return true
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
