package loadbalancer

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Config is the configuration of a load balancer, in its file members.json. The [Supervisor] writes it, and the process
// of the load balancer reads it. A process of an earlier build may read the file, so its fields must not change.
type Config struct {
	// Listen is the address for clients. It does not change.
	Listen netip.AddrPort `json:"listen"`
	// Members, sorted by name.
	Members []Member `json:"members,omitempty"`
}

// Member is one API server. The container backend fills it in from backend.BalancerMember by a conversion, so both must
// have the same fields.
type Member struct {
	Name    string         `json:"name"`
	Address netip.AddrPort `json:"address"`
	// Leaving members get no new connections while another member is healthy.
	Leaving bool `json:"leaving,omitempty"`
}

// State is the state that a load balancer process reports, in its file state.json. A later build reads the file of a
// running process, so its JSON names must not change.
type State struct {
	// Healthy lists the names of the members whose API server is ready, sorted.
	Healthy []string `json:"answering,omitempty"`
	// Problems of the other members, by name.
	Problems map[string]string `json:"problems,omitempty"`
	// Expired contains the expiry times of expired certificates, by member name.
	Expired map[string]string `json:"expired,omitempty"`
	// Failure is the reason why the process exited by itself.
	Failure string `json:"failure,omitempty"`
}

// Folder is the directory of one load balancer. Both the [Supervisor] and the process use it.
type Folder string

// workingDirectory is the working directory of this process. Files below it are found even if the directory is renamed.
// [RunInFolder] uses it as the directory of its load balancer.
const workingDirectory Folder = "/proc/self/cwd"

// exists reports whether the directory exists: a process can have a deleted working directory. balancer.follow ends the
// process when it returns false.
func (f Folder) exists() bool {
	info, err := os.Stat(string(f))
	if err != nil {
		return !os.IsNotExist(err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || st.Nlink > 0
}

// Lock is the path of the lock that the process holds while it runs.
func (f Folder) Lock() string { return filepath.Join(string(f), "lock") }

// Log is the path of the process's log.
func (f Folder) Log() string { return filepath.Join(string(f), "load-balancer.log") }

func (f Folder) config() string { return filepath.Join(string(f), "members.json") }
func (f Folder) state() string  { return filepath.Join(string(f), "state.json") }

// Load reads the configuration. The process calls it repeatedly, and [Supervisor.Config] once.
func (f Folder) Load() (Config, error) {
	var c Config
	found, err := datadir.ReadJSON(f.config(), &c)
	if err == nil && !found {
		err = fmt.Errorf("read %s: %w", f.config(), os.ErrNotExist)
	}
	return c, err
}

// Save writes the configuration atomically. [Supervisor.Ensure] calls it, and the process reads the file.
func (f Folder) Save(c Config) error {
	slices.SortFunc(c.Members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return datadir.WriteJSON(f.config(), c)
}

// ReadState returns the last state that the process reported. It is empty if the process has not reported any.
// [Supervisor.Status] calls it.
func (f Folder) ReadState() (State, error) {
	var s State
	_, err := datadir.ReadJSON(f.state(), &s)
	return s, err
}

func (c Config) validate() error {
	if !c.Listen.IsValid() {
		return fault.New(fault.Bug, "LoadBalancerConfig", "a load balancer has no address to listen on")
	}
	return nil
}
