package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/validation/field"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/componentfile"
	"github.com/slipwayhq/slipway/internal/componentflag"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/ownuser"
)

// ReasonInvalid is the reason of the fault for a configuration that cannot work.
const ReasonInvalid = "ControlPlaneConfigInvalid"

// Defaults of Config.
const (
	DefaultServiceDomain   = "cluster.local"
	DefaultCertificateDays = 365
)

// Config configures the process of a control plane.
type Config struct {
	Cluster string `json:"cluster"` // name of the Cluster
	Version string `json:"version"` // of Kubernetes, "v1.36.3"
	// Endpoint is the address and port that nodes and clients use; the API server listens there. The address
	// need not exist yet.
	Endpoint string `json:"endpoint"`
	// Everywhere makes the API server listen at all addresses with the port of the endpoint, which leads here from elsewhere: as that of
	// a Service does to a Pod.
	Everywhere bool `json:"everywhere,omitempty"`
	// Names are further host names and addresses for the serving certificate.
	Names []string `json:"names,omitempty"`

	ServiceCIDRs  []string `json:"serviceCIDRs"`
	PodCIDRs      []string `json:"podCIDRs"`
	ServiceDomain string   `json:"serviceDomain,omitempty"` // default DefaultServiceDomain

	// CertificateDays is how long leaf certificates are valid. Default DefaultCertificateDays.
	CertificateDays int `json:"certificateDays,omitempty"`
	// Authorities stands for the content of the authorities' files: another value restarts the process.
	Authorities string `json:"authorities,omitempty"`

	// Flags that are given after Slipway's own, "--name=value"; those that package componentflag allows.
	APIServer         []string `json:"apiServer,omitempty"`
	ControllerManager []string `json:"controllerManager,omitempty"`
	Scheduler         []string `json:"scheduler,omitempty"`
	Etcd              []string `json:"etcd,omitempty"`

	// Security is what kube-apiserver reads from files.
	Security hostedv1.Security `json:"security,omitzero"`
	// EncryptionKeys stands for the keys in the PKI folder that data in etcd is or was encrypted with; empty: there are none.
	EncryptionKeys string `json:"encryptionKeys,omitempty"`
	// EncryptionMark says that everything which was encrypted before was written once more with the first of them; see [Data.Rewritten].
	EncryptionMark string `json:"encryptionMark,omitempty"`
	// Restore is the ID of the snapshot that takes the place of the data, unless it has already; empty: none ever has.
	Restore string `json:"restore,omitempty"`
	// Only is what alone is to run, OnlyEtcd or OnlyLoopback; empty: everything.
	Only string `json:"only,omitempty"`
}

// Values of Only.
const (
	// OnlyEtcd: etcd runs alone, on its socket.
	OnlyEtcd = "etcd"
	// OnlyLoopback: everything runs, and the API server does not listen at the endpoint.
	OnlyLoopback = "loopback"
)

// Validate returns a fault of kind Invalid that names the first thing that
// cannot work.
func (c Config) Validate() error {
	if c.Cluster == "" || c.Version == "" {
		return fault.New(fault.Invalid, ReasonInvalid, "a control plane needs the name of its cluster and a Kubernetes version")
	}
	if c.Only != "" && c.Only != OnlyEtcd && c.Only != OnlyLoopback {
		return fault.New(fault.Invalid, ReasonInvalid, "a control plane cannot run %q only", c.Only)
	}
	if _, err := c.Address(); err != nil {
		return err
	}
	for what, ranges := range map[string][]string{"Service": c.ServiceCIDRs, "Pod": c.PodCIDRs} {
		if len(ranges) == 0 || len(ranges) > 2 {
			return fault.New(fault.Invalid, ReasonInvalid, "a control plane needs one %s address range, or one of each IP family", what)
		}
		for _, r := range ranges {
			if _, err := netip.ParsePrefix(r); err != nil {
				return fault.New(fault.Invalid, ReasonInvalid, "%s address range %q is not a range like 10.128.0.0/16", what, r)
			}
		}
	}
	if err := c.validateFlags(); err != nil {
		return err
	}
	return c.validateSecurity()
}

// validateSecurity refuses what kube-apiserver would not start with.
func (c Config) validateSecurity() error {
	if c.Security.Encryption != nil && c.EncryptionKeys == "" {
		return fault.New(fault.Invalid, ReasonInvalid, "encryption needs keys")
	}
	if problems := componentfile.Problems(c.Security, field.NewPath("spec"), c.Issuer()); len(problems) > 0 {
		return fault.New(fault.Invalid, ReasonInvalid, "%s", problems[0].Error())
	}
	return nil
}

// validateFlags refuses the first flag that the component may not have: the file of the configuration may be older than
// the rules of admission.
func (c Config) validateFlags() error {
	for _, component := range []struct {
		name  componentflag.Component
		flags []string
	}{
		{componentflag.APIServer, c.APIServer}, {componentflag.ControllerManager, c.ControllerManager},
		{componentflag.Scheduler, c.Scheduler}, {componentflag.Etcd, c.Etcd},
	} {
		for _, f := range component.flags {
			name, value := componentflag.Split(f)
			if problem := componentflag.Problem(component.name, name, value); problem != "" {
				return fault.New(fault.Invalid, ReasonInvalid, "%s", problem)
			}
		}
	}
	return nil
}

// Address is Endpoint, parsed. Its host must be an IP address, of this machine unless the API server listens everywhere.
func (c Config) Address() (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(c.Endpoint)
	switch valid := err == nil && a.Port() != 0; {
	case !valid && c.Everywhere:
		return netip.AddrPort{}, fault.New(fault.Invalid, ReasonInvalid, "control plane endpoint %q must be an IP address and a port, for example 203.0.113.1:6443", c.Endpoint)
	case !valid:
		return netip.AddrPort{}, fault.New(fault.Invalid, ReasonInvalid,
			"control plane endpoint %q must be an IP address of this machine and a port, for example 172.31.0.1:6443", c.Endpoint)
	}
	return a, nil
}

// Domain is ServiceDomain or its default.
func (c Config) Domain() string {
	if c.ServiceDomain == "" {
		return DefaultServiceDomain
	}
	return c.ServiceDomain
}

// Issuer is who signs the tokens of ServiceAccounts.
func (c Config) Issuer() string { return "https://kubernetes.default.svc." + c.Domain() }

// Hash stands for the configuration: a process that runs with another one must
// be restarted.
func (c Config) Hash() string {
	data, err := json.Marshal(c)
	if err != nil { // strings and numbers always encode
		panic(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

// Save writes the configuration to path.
func (c Config) Save(path string) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	_, err = datadir.WriteFile(path, append(data, '\n'), 0o600)
	return err
}

// Load reads and checks a configuration.
func Load(path string) (Config, error) {
	data, err := ownuser.ReadOurs(filepath.Split(path))
	if err != nil {
		return Config{}, err
	}
	var c Config
	if err := json.Unmarshal(data, &c); err != nil {
		return Config{}, fmt.Errorf("read %s: %w", path, err)
	}
	return c, c.Validate()
}
