package store

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
)

// noteName is the name of the note that stores the members. Existing state files contain it.
const noteName = "etcd-members"

// EtcdNotes persist state across restarts of this process.
type EtcdNotes interface {
	Get(name string) []byte
	Set(name string, value []byte) error
}

// EtcdCluster is the etcd of one simulated cluster whose control plane runs on Machines. The backend of simulated
// Machines (internal/local/simulated) adds, stops and rebuilds members when Machines are created, deleted or restored;
// controllers connect to the members with the etcd protocol ([EtcdCluster.Serve]).
type EtcdCluster struct {
	notes     EtcdNotes
	authority pki.Pair
	now       func() time.Time

	mu sync.Mutex
	// current is a copy of the stored state, nil until it is read.
	current *etcdState
	// certificates of the members by name.
	certificates map[string]memberCertificate
}

// EtcdMember is a member of an etcd cluster. Its JSON form is in existing state files.
type EtcdMember struct {
	ID      uint64 `json:"id"`
	Name    string `json:"name"`
	Address string `json:"address"`
	// Learner members have no vote yet.
	Learner bool `json:"learner,omitempty"`
	// Stopped members do not respond.
	Stopped bool `json:"stopped,omitempty"`
	// Alarms are the active alarms of the member: NOSPACE, CORRUPT.
	Alarms []string `json:"alarms,omitempty"`
	// Delay is the delay of each response, as on a slow disk.
	Delay time.Duration `json:"delay,omitempty"`
}

// etcdState is the stored state. Its JSON form is in existing state files.
type etcdState struct {
	Leader uint64 `json:"leader,omitempty"`
	Term   uint64 `json:"term,omitempty"`
	// Rebuilt is the ID of the last rebuild, and Staged the ID of the last staged snapshot.
	Rebuilt string       `json:"rebuilt,omitempty"`
	Staged  string       `json:"staged,omitempty"`
	Members []EtcdMember `json:"members,omitempty"`
}

// NewEtcd returns the etcd cluster whose members are stored in the notes.
func NewEtcd(notes EtcdNotes, authority pki.Pair, now func() time.Time) *EtcdCluster {
	return &EtcdCluster{notes: notes, authority: authority, now: now, certificates: map[string]memberCertificate{}}
}

// Members returns all members, sorted by name. The backend of simulated Machines reports their state.
func (c *EtcdCluster) Members() []EtcdMember {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.load()
	slices.SortFunc(s.Members, func(a, b EtcdMember) int { return compare(a.Name, b.Name) })
	return s.Members
}

// Leader returns the name of the leader, or an empty string without a quorum.
func (c *EtcdCluster) Leader() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.load()
	if m := s.byID(s.Leader); m != nil && s.quorum() {
		return m.Name
	}
	return ""
}

// HasQuorum reports whether more than half of the voting members respond. It returns true for a cluster without
// members. Without a quorum, the API server of the cluster returns errors.
func (c *EtcdCluster) HasQuorum() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.load()
	return len(s.Members) == 0 || s.quorum()
}

// Join adds the member of a node if necessary and starts it. The first member forms the cluster; adding another one
// requires a quorum.
func (c *EtcdCluster) Join(name, address string) (joined bool, err error) {
	err = c.change(func(s *etcdState) bool {
		if m := s.byName(name); m != nil {
			joined = true
			if !m.Stopped {
				return false
			}
			m.Stopped = false
			s.elect()
			return true
		}
		if joined = len(s.Members) == 0 || s.quorum(); !joined {
			return false
		}
		s.Members = append(s.Members, EtcdMember{ID: memberID(name, s.Term), Name: name, Address: address})
		s.elect()
		return true
	})
	return joined, err
}

// Stop stops the member of a node, because the node or its etcd is gone. It succeeds if the member does not exist. The
// backend of simulated Machines calls it.
func (c *EtcdCluster) Stop(name string) error {
	return c.Change(name, func(m *EtcdMember) { m.Stopped = true })
}

// Change changes the simulated faults of the member of a node.
func (c *EtcdCluster) Change(name string, change func(*EtcdMember)) error {
	return c.change(func(s *etcdState) bool {
		m := s.byName(name)
		if m == nil {
			return false
		}
		before := *m
		change(m)
		s.elect()
		return !sameMember(before, *m)
	})
}

// Rebuild makes the member of a node the only one, even without a quorum. It has no effect if it is repeated with the
// same ID.
func (c *EtcdCluster) Rebuild(name, id string) error {
	return c.change(func(s *etcdState) bool {
		m := s.byName(name)
		if m == nil || s.Rebuilt == id {
			return false
		}
		only := *m
		only.Stopped, only.Learner = false, false
		s.Members, s.Rebuilt, s.Leader = []EtcdMember{only}, id, 0
		s.elect()
		return true
	})
}

// Rebuilt returns the ID of the last rebuild, or an empty string. The backend reports the progress of a restore with
// it.
func (c *EtcdCluster) Rebuilt() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.load().Rebuilt
}

// Stage records that a snapshot is ready to be restored.
func (c *EtcdCluster) Stage(id string) error {
	return c.change(func(s *etcdState) bool {
		changed := s.Staged != id
		s.Staged = id
		return changed
	})
}

// Staged returns the ID of the last staged snapshot, or an empty string.
func (c *EtcdCluster) Staged() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.load().Staged
}

// Term returns the number of leader elections.
func (c *EtcdCluster) Term() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(c.load().Term)
}

func sameMember(a, b EtcdMember) bool {
	return a.ID == b.ID && a.Name == b.Name && a.Address == b.Address && a.Learner == b.Learner && a.Stopped == b.Stopped &&
		a.Delay == b.Delay && slices.Equal(a.Alarms, b.Alarms)
}

// change applies a function to the state and stores the result if the function reports a change.
func (c *EtcdCluster) change(change func(*etcdState) bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.load()
	if !change(&s) {
		return nil
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := c.notes.Set(noteName, data); err != nil {
		return err
	}
	c.current = &s
	return nil
}

// load returns a copy of the state. State that cannot be read is treated as empty. The lock must be held.
func (c *EtcdCluster) load() etcdState {
	if c.current == nil {
		var s etcdState
		if err := json.Unmarshal(c.notes.Get(noteName), &s); err != nil {
			s = etcdState{}
		}
		c.current = &s
	}
	s := *c.current
	s.Members = slices.Clone(s.Members)
	return s
}

func (s *etcdState) byName(name string) *EtcdMember {
	return s.find(func(m EtcdMember) bool { return m.Name == name })
}

func (s *etcdState) byID(id uint64) *EtcdMember {
	return s.find(func(m EtcdMember) bool { return m.ID == id })
}

func (s *etcdState) find(is func(EtcdMember) bool) *EtcdMember {
	if i := slices.IndexFunc(s.Members, is); i >= 0 {
		return &s.Members[i]
	}
	return nil
}

// quorum reports whether more than half of the voting members respond.
func (s *etcdState) quorum() bool {
	voters, up := 0, 0
	for _, m := range s.Members {
		if m.Learner {
			continue
		}
		voters++
		if !m.Stopped {
			up++
		}
	}
	return up > voters/2
}

// elect elects a new leader if the current one is stopped or no longer a voting member. Without a quorum there is no
// leader.
func (s *etcdState) elect() {
	able := func(m EtcdMember) bool { return !m.Stopped && !m.Learner }
	if m := s.byID(s.Leader); m != nil && able(*m) && s.quorum() {
		return
	}
	s.Leader = 0
	if !s.quorum() {
		return
	}
	if m := s.find(able); m != nil {
		s.Leader, s.Term = m.ID, s.Term+1
	}
}

// memberID returns the ID of a member. It depends on the term, so a member that rejoins with its previous name has a
// new ID.
func memberID(name string, term uint64) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name)) // never fails
	return sum.Sum64()>>8 + term + 1
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
