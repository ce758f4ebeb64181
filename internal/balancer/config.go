package balancer

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
)

// Config is what a load balancer is told.
type Config struct {
	// Listen is where clients connect to. It does not change.
	Listen netip.AddrPort `json:"listen"`
	// Members in order of their names.
	Members []Member `json:"members,omitempty"`
}

// Member is one API server.
type Member struct {
	Name    string         `json:"name"`
	Address netip.AddrPort `json:"address"`
	// Leaving members get no new connection while there is another.
	Leaving bool `json:"leaving,omitempty"`
}

// State is what a load balancer says of its members.
type State struct {
	// Answering are the names of the members whose API server answers, sorted.
	Answering []string `json:"answering,omitempty"`
	// Problems of the others, by name.
	Problems map[string]string `json:"problems,omitempty"`
	// Expired is when the certificates expired of those whose problem that is, by name.
	Expired map[string]string `json:"expired,omitempty"`
	// Failure is why the process ended by itself.
	Failure string `json:"failure,omitempty"`
}

// Folder is the folder of one load balancer.
type Folder string

// here is the folder that this process works in. Files that are named by it are found also when the folder was renamed.
const here Folder = "/proc/self/cwd"

// exists reports whether the folder is there: a process may work in one that was deleted.
func (f Folder) exists() bool {
	info, err := os.Stat(string(f))
	if err != nil {
		return !os.IsNotExist(err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || st.Nlink > 0
}

// Lock is the path of the lock that the process holds while it lives.
func (f Folder) Lock() string { return filepath.Join(string(f), "lock") }

// Log is the path of the process's log.
func (f Folder) Log() string { return filepath.Join(string(f), "load-balancer.log") }

func (f Folder) config() string { return filepath.Join(string(f), "members.json") }
func (f Folder) state() string  { return filepath.Join(string(f), "state.json") }

// Load reads the configuration.
func (f Folder) Load() (Config, error) {
	var c Config
	return c, readJSON(f.config(), &c)
}

// Save writes the configuration, at once or not at all.
func (f Folder) Save(c Config) error {
	slices.SortFunc(c.Members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return writeJSON(f.config(), c)
}

// ReadState returns what the process said last; nothing, if it has not said anything.
func (f Folder) ReadState() (State, error) {
	var s State
	err := readJSON(f.state(), &s)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return s, err
}

func (c Config) validate() error {
	if !c.Listen.IsValid() {
		return fault.New(fault.Bug, "LoadBalancerConfig", "a load balancer has no address to listen on")
	}
	return nil
}

func readJSON(path string, to any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

func writeJSON(path string, from any) error {
	data, err := json.MarshalIndent(from, "", "  ")
	if err != nil {
		return err
	}
	_, err = datadir.WriteFile(path, append(data, '\n'), 0o600)
	return err
}
