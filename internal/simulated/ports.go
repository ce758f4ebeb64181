package simulated

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net"
	"strconv"
	"strings"
	"syscall"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Ports of simulated control planes are below the ephemeral port range of operating systems, so that a port that is
// free once is still free after a restart.
const (
	firstPort = 12000
	portCount = 20000
	// Host is the default address of simulated control planes.
	Host = "127.0.0.1"
)

// Ports returns the first and the last port of simulated control planes, for the validation of endpoints. Both backends
// call it.
func Ports() (first, last uint16) { return firstPort, firstPort + portCount - 1 }

// Reserve chooses a free port at [Host] for a control plane and reserves it until the control plane is started there or
// removed. It returns the same port for the same name. The backends of simulated clusters call it for the endpoint of a
// new Cluster.
func (s *Server) Reserve(name string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clusters[name]; c != nil {
		return portOf(c.spec.Address)
	}
	if l := s.reserved[name]; l != nil {
		return portOf(l.Addr().String())
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name)) // never fails
	for i := range portCount {
		port := firstPort + (int(sum.Sum32()%portCount)+i)%portCount
		l, err := net.Listen("tcp", net.JoinHostPort(Host, strconv.Itoa(port)))
		if err == nil {
			s.reserved[name] = l
			return port, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return 0, fmt.Errorf("choosing a port for the simulated control plane %s: %w", name, err)
		}
	}
	return 0, fault.New(fault.Invalid, "NoPortFree", "no port from %d to %d is free at %s", firstPort, firstPort+portCount-1, Host)
}

// IsKnown reports whether a control plane is running, has a reserved port, or has stored state. The backend of
// simulated Machines calls it for its control planes and load balancers.
func (s *Server) IsKnown(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clusters[name] != nil || s.reserved[name] != nil || s.store.Exists(name)
}

// Count returns the number of control planes that run or have a reserved port, in a namespace and in total. The name of
// a control plane begins with its namespace. The backend of simulated Machines compares it with the quota.
func (s *Server) Count(namespace string) (own, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := maps.Clone(s.reserved)
	for name := range s.clusters {
		names[name] = nil
	}
	for name := range names {
		if strings.HasPrefix(name, namespace+".") {
			own++
		}
	}
	return own, len(names)
}

// listener returns the listener at an address, reusing the reserved one if there is one. The lock must be held.
func (s *Server) listener(name, address string) (net.Listener, error) {
	if l := s.reserved[name]; l != nil {
		delete(s.reserved, name)
		if l.Addr().String() == address {
			return l, nil
		}
		_ = l.Close() // no client is connected
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fault.New(fault.Unreachable, "AddressNotFree",
			"the simulated control plane cannot listen at %s; if another program does, end it", address).From(err)
	}
	return l, nil
}

func portOf(address string) (int, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(port)
}
