package etcd

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/slipwayhq/slipway/internal/plane/pki"
)

// noteName is the note that the members are kept in.
const noteName = "etcd-members"

// Notes keep what outlives this program.
type Notes interface {
	Get(name string) []byte
	Set(name string, value []byte) error
}

// Cluster is the etcd of one simulated cluster.
type Cluster struct {
	notes     Notes
	authority pki.Pair
	now       func() time.Time

	mu sync.Mutex
	// current is what the notes say; nil: they were not read yet.
	current *state
	// certificates of members by their names.
	certificates map[string]certificate
}

// Member of an etcd cluster.
type Member struct {
	ID      uint64 `json:"id"`
	Name    string `json:"name"`
	Address string `json:"address"`
	// Learner has no vote yet.
	Learner bool `json:"learner,omitempty"`
	// Stopped members do not answer.
	Stopped bool `json:"stopped,omitempty"`
	// Alarms that are raised for it: NOSPACE, CORRUPT.
	Alarms []string `json:"alarms,omitempty"`
	// Delay is how long it takes to answer, as on a slow disk.
	Delay time.Duration `json:"delay,omitempty"`
}

// state is what is kept.
type state struct {
	Leader uint64 `json:"leader,omitempty"`
	Term   uint64 `json:"term,omitempty"`
	// Rebuilt is the id of the last rebuild, Staged that of the last snapshot that was staged.
	Rebuilt string   `json:"rebuilt,omitempty"`
	Staged  string   `json:"staged,omitempty"`
	Members []Member `json:"members,omitempty"`
}

// New returns the etcd whose members are in the notes.
func New(notes Notes, authority pki.Pair, now func() time.Time) *Cluster {
	return &Cluster{notes: notes, authority: authority, now: now, certificates: map[string]certificate{}}
}

// Members returns all members by name.
func (c *Cluster) Members() []Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.load()
	slices.SortFunc(s.Members, func(a, b Member) int { return compare(a.Name, b.Name) })
	return s.Members
}

// Leader returns the name of the member that leads; empty without a quorum.
func (c *Cluster) Leader() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.load()
	if m := s.byID(s.Leader); m != nil && s.quorum() {
		return m.Name
	}
	return ""
}

// HasQuorum reports whether more than half of the members that vote answer. A cluster without members has nothing to agree on.
func (c *Cluster) HasQuorum() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.load()
	return len(s.Members) == 0 || s.quorum()
}

// Join makes the member of a node exist and answer. The first is the whole cluster; a further one needs a quorum.
func (c *Cluster) Join(name, address string) (joined bool, err error) {
	err = c.change(func(s *state) bool {
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
		s.Members = append(s.Members, Member{ID: identity(name, s.Term), Name: name, Address: address})
		s.elect()
		return true
	})
	return joined, err
}

// Stop makes the member of a node answer no more: the node is gone, or its etcd. One that is not a member is no error.
func (c *Cluster) Stop(name string) error {
	return c.Change(name, func(m *Member) { m.Stopped = true })
}

// Change changes what is wrong with the member of a node.
func (c *Cluster) Change(name string, change func(*Member)) error {
	return c.change(func(s *state) bool {
		m := s.byName(name)
		if m == nil {
			return false
		}
		before := *m
		change(m)
		s.elect()
		return !equal(before, *m)
	})
}

// Rebuild makes the member of a node the only one, whether there is a quorum or not, once for each id.
func (c *Cluster) Rebuild(name, id string) error {
	return c.change(func(s *state) bool {
		m := s.byName(name)
		if m == nil || s.Rebuilt == id {
			return false
		}
		only := *m
		only.Stopped, only.Learner = false, false
		s.Members, s.Rebuilt, s.Leader = []Member{only}, id, 0
		s.elect()
		return true
	})
}

// Rebuilt is the id of the last rebuild; empty: there was none.
func (c *Cluster) Rebuilt() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.load().Rebuilt
}

// Stage records that a snapshot is there to be restored.
func (c *Cluster) Stage(id string) error {
	return c.change(func(s *state) bool {
		changed := s.Staged != id
		s.Staged = id
		return changed
	})
}

// Staged is the id of the last snapshot that was staged; empty: there was none.
func (c *Cluster) Staged() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.load().Staged
}

// Term is how often a leader was elected.
func (c *Cluster) Term() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(c.load().Term)
}

func equal(a, b Member) bool {
	return a.ID == b.ID && a.Name == b.Name && a.Address == b.Address && a.Learner == b.Learner && a.Stopped == b.Stopped &&
		a.Delay == b.Delay && slices.Equal(a.Alarms, b.Alarms)
}

// change changes the state and writes it where it is another one then.
func (c *Cluster) change(change func(*state) bool) error {
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

// load returns the state, which may be changed. One that cannot be read counts as lost. It is called with mu held.
func (c *Cluster) load() state {
	if c.current == nil {
		var s state
		if err := json.Unmarshal(c.notes.Get(noteName), &s); err != nil {
			s = state{}
		}
		c.current = &s
	}
	s := *c.current
	s.Members = slices.Clone(s.Members)
	return s
}

func (s *state) byName(name string) *Member {
	return s.find(func(m Member) bool { return m.Name == name })
}

func (s *state) byID(id uint64) *Member {
	return s.find(func(m Member) bool { return m.ID == id })
}

func (s *state) find(is func(Member) bool) *Member {
	if i := slices.IndexFunc(s.Members, is); i >= 0 {
		return &s.Members[i]
	}
	return nil
}

// quorum reports whether more than half of those that vote answer.
func (s *state) quorum() bool {
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

// elect makes another member lead where the leader does not answer or is none any more. Without a quorum no one leads.
func (s *state) elect() {
	able := func(m Member) bool { return !m.Stopped && !m.Learner }
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

// identity is the ID of a member. One that comes back under its old name is another member.
func identity(name string, term uint64) uint64 {
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
