package hosts

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

const (
	// maxInventory limits the size of a file with hosts.
	maxInventory = 4 << 20
	// maxKeyFile limits the size of a file with a key.
	maxKeyFile = 64 << 10
)

// entry is a host to add, from the flags of "hosts add" ([addFlags]) or from a file with hosts. The JSON names are the
// format of that file, so they must not change.
type entry struct {
	Address         string            `json:"address,omitempty"`
	Name            string            `json:"name,omitempty"`
	NodeAddress     string            `json:"nodeAddress,omitempty"`
	Port            int               `json:"port,omitempty"`
	User            string            `json:"user,omitempty"`
	KeyFile         string            `json:"keyFile,omitempty"`
	CertificateFile string            `json:"certificateFile,omitempty"`
	HostKeys        []string          `json:"hostKeys,omitempty"`
	Jump            string            `json:"jump,omitempty"`
	JumpKeyFile     string            `json:"jumpKeyFile,omitempty"`
	JumpHostKeys    []string          `json:"jumpHostKeys,omitempty"`
	Sudo            *bool             `json:"sudo,omitempty"`
	FailureDomain   string            `json:"failureDomain,omitempty"`
	OfferedTo       string            `json:"offeredTo,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
}

// inventoryFile is a file with hosts.
type inventoryFile struct {
	Defaults entry   `json:"defaults,omitempty"`
	Hosts    []entry `json:"hosts"`
}

// parseInventory parses a file with hosts. Unknown fields are errors, because a misspelled one would be ignored.
// [addFlags.entries] calls it.
func parseInventory(text []byte) ([]entry, error) {
	var f inventoryFile
	if err := yaml.UnmarshalStrict(text, &f); err != nil {
		return nil, fault.New(fault.Invalid, reasonUsage, "the file with hosts cannot be parsed").From(err)
	}
	if len(f.Hosts) == 0 {
		return nil, fault.New(fault.Invalid, reasonUsage, "the file contains no hosts; list them below \"hosts:\"")
	}
	var out []entry
	for _, h := range f.Hosts {
		out = append(out, h.withDefaults(f.Defaults))
	}
	return out, nil
}

// withDefaults fills the empty fields, except for those that only one host can have. The defaults of the file come
// first, then the flags of the command.
func (e entry) withDefaults(d entry) entry {
	e.Port = cmp.Or(e.Port, d.Port)
	e.User = cmp.Or(e.User, d.User)
	e.KeyFile, e.CertificateFile = cmp.Or(e.KeyFile, d.KeyFile), cmp.Or(e.CertificateFile, d.CertificateFile)
	e.Jump, e.JumpKeyFile = cmp.Or(e.Jump, d.Jump), cmp.Or(e.JumpKeyFile, d.JumpKeyFile)
	e.FailureDomain, e.OfferedTo = cmp.Or(e.FailureDomain, d.FailureDomain), cmp.Or(e.OfferedTo, d.OfferedTo)
	if len(e.JumpHostKeys) == 0 {
		e.JumpHostKeys = d.JumpHostKeys
	}
	if e.Sudo == nil {
		e.Sudo = d.Sudo
	}
	merged := map[string]string{}
	for _, from := range []map[string]string{d.Labels, e.Labels} {
		for k, v := range from {
			merged[k] = v
		}
	}
	e.Labels = merged
	return e
}

// complete fills what follows from other fields, and validates the rest. [addFlags.entries] calls it after all defaults
// are known.
func (e entry) complete() (entry, error) {
	e.User = cmp.Or(e.User, "root")
	e.Name = cmp.Or(e.Name, nameFor(e.Address))
	if e.Sudo == nil {
		sudo := e.User != "root"
		e.Sudo = &sudo
	}
	if e.Address == "" {
		return e, fault.New(fault.Invalid, reasonUsage, "a host has no address")
	}
	if e.KeyFile == "" {
		return e, fault.New(fault.Invalid, reasonUsage, "host %s has no private key: provide its file with --key, or with keyFile in the file with hosts", e.Address)
	}
	if _, err := netip.ParseAddr(cmp.Or(e.NodeAddress, e.Address)); err != nil {
		return e, fault.New(fault.Invalid, reasonUsage, "host %s needs the IP address of its node: provide it with --node-address, or with nodeAddress in the file with hosts", e.Address)
	}
	if problems := validation.IsDNS1123Subdomain(e.Name); len(problems) > 0 {
		return e, fault.New(fault.Invalid, reasonUsage, "%q cannot be the name of an SSHHost: %s; use --name", e.Name, strings.Join(problems, "; "))
	}
	if _, err := e.offeredTo(); err != nil {
		return e, err
	}
	_, err := parseJump(e.Jump)
	return e, err
}

// notInName matches characters that names of objects cannot have.
var notInName = regexp.MustCompile(`[^a-z0-9-]+`)

// nameFor returns the name of an SSHHost: the first part of a DNS name, or "host-" with the address.
func nameFor(address string) string {
	if _, err := netip.ParseAddr(address); err == nil {
		return "host-" + strings.Trim(notInName.ReplaceAllString(strings.ToLower(address), "-"), "-")
	}
	first, _, _ := strings.Cut(strings.ToLower(address), ".")
	return strings.Trim(notInName.ReplaceAllString(first, "-"), "-")
}

// offeredTo returns the selector for namespaces: nil for the host's own, empty for all.
func (e entry) offeredTo() (*metav1.LabelSelector, error) {
	switch e.OfferedTo {
	case "":
		return nil, nil
	case "all":
		return &metav1.LabelSelector{}, nil
	}
	selector, err := metav1.ParseToLabelSelector(e.OfferedTo)
	if err != nil {
		return nil, fault.New(fault.Invalid, reasonUsage, "%q selects no namespaces; use \"all\" or labels such as team=blue", e.OfferedTo).From(err)
	}
	return selector, nil
}

// jump is the parsed text of a jump host in an entry.
type jump struct {
	user, address string
	port          int
}

// parseJump parses USER@HOST:PORT; the user and the port are optional.
func parseJump(text string) (*jump, error) {
	if text == "" {
		return nil, nil
	}
	j := &jump{user: "root", address: text, port: 22}
	if user, rest, ok := strings.Cut(text, "@"); ok {
		j.user, j.address = user, rest
	}
	if at := strings.LastIndex(j.address, ":"); at >= 0 && (strings.Count(j.address, ":") == 1 || strings.HasPrefix(j.address, "[")) {
		port, err := strconv.ParseUint(j.address[at+1:], 10, 16)
		if err != nil {
			return nil, fault.New(fault.Invalid, reasonUsage, "%q is not a jump host; write it like ops@192.0.2.1:22", text)
		}
		j.address, j.port = j.address[:at], int(port)
	}
	j.address = strings.Trim(j.address, "[]")
	if j.address == "" || j.user == "" {
		return nil, fault.New(fault.Invalid, reasonUsage, "%q is not a jump host; write it like ops@192.0.2.1:22", text)
	}
	return j, nil
}

// readKeyFile reads a file with a key. "~/" is the home directory, so that files with hosts can use it. "hosts update"
// reads the new key with it, too.
func readKeyFile(file, home string) ([]byte, error) {
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		file = filepath.Join(home, rest)
	}
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Invalid, reasonUsage, "the file %s does not exist", file)
	}
	if err == nil && info.Size() > maxKeyFile {
		return nil, fault.New(fault.Invalid, reasonUsage, "the file %s is too large to be a key", file)
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// newHost is an entry with the contents of its key files. addHost creates it with read, pin sets its host keys, and
// create writes its objects (add.go).
type newHost struct {
	entry
	key, certificate, jumpKey []byte
}

// read reads the key files of an entry.
func (e entry) read(home string) (h newHost, err error) {
	h.entry = e
	if h.key, err = readKeyFile(e.KeyFile, home); err != nil {
		return h, err
	}
	if e.CertificateFile != "" {
		if h.certificate, err = readKeyFile(e.CertificateFile, home); err != nil {
			return h, err
		}
	}
	h.jumpKey = h.key
	if e.JumpKeyFile != "" {
		h.jumpKey, err = readKeyFile(e.JumpKeyFile, home)
	}
	return h, err
}

// target returns the target for a connection before the SSHHost exists. It has the host keys that are pinned until now.
func (h newHost) target() (remote.Target, error) {
	t := remote.Target{Address: h.Address, Port: h.Port, User: h.User, PrivateKey: h.key, Certificate: h.certificate, HostKeys: h.HostKeys, Sudo: *h.Sudo}
	j, err := parseJump(h.Jump)
	if j != nil {
		t.Jump = &remote.Target{Address: j.address, Port: j.port, User: j.user, PrivateKey: h.jumpKey, HostKeys: h.JumpHostKeys}
	}
	return t, err
}

// ownedLabel marks the Secrets that "hosts add" created, with the name of their host. createSecret replaces the data of
// no other Secret, so label and value must stay the same. "hosts remove" does not read the label: these Secrets are
// deleted with their owner, the SSHHost.
const ownedLabel = "infrastructure.slipway.dev/ssh-host"

// secrets returns the Secrets of a host: its own, and another one for a jump host. Package inventory reads the keys of
// the data by these names, and object refers to the Secrets by their names. splitSecret uses the first one.
func (h newHost) secrets(namespace string) []*corev1.Secret {
	secret := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{ownedLabel: labelValue(h.Name)}},
			Type:       corev1.SecretTypeOpaque, Data: data,
		}
	}
	data := map[string][]byte{"ssh-privatekey": h.key}
	if len(h.certificate) > 0 {
		data["ssh-certificate"] = h.certificate
	}
	out := []*corev1.Secret{secret(h.Name+"-ssh", data)}
	if h.Jump != "" {
		out = append(out, secret(h.Name+"-ssh-jump", map[string][]byte{"ssh-privatekey": h.jumpKey}))
	}
	return out
}

// labelValue shortens a name to the length of a label.
func labelValue(name string) string { return strings.Trim(name[:min(len(name), 63)], "-.") }

// object returns the SSHHost, which create writes and compare compares with an existing one.
func (h newHost) object(namespace string) (*infrav1.SSHHost, error) {
	offered, err := h.offeredTo()
	if err != nil {
		return nil, err
	}
	sudo := infrav1.SSHSudoNever
	if *h.Sudo {
		sudo = infrav1.SSHSudoAlways
	}
	out := &infrav1.SSHHost{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: h.Name, Labels: h.Labels},
		Spec: infrav1.SSHHostSpec{
			SSHServer: infrav1.SSHServer{
				Address: h.Address, Port: int32(cmp.Or(h.Port, 22)), User: h.User, HostKeys: h.HostKeys,
				CredentialsRef: infrav1.SSHCredentialsReference{Name: h.Name + "-ssh"},
			},
			NodeAddress: h.NodeAddress, Sudo: sudo, FailureDomain: h.FailureDomain, OfferedTo: offered,
		},
	}
	j, err := parseJump(h.Jump)
	if j != nil {
		out.Spec.Jump = &infrav1.SSHServer{
			Address: j.address, Port: int32(j.port), User: j.user, HostKeys: h.JumpHostKeys,
			CredentialsRef: infrav1.SSHCredentialsReference{Name: h.Name + "-ssh-jump"},
		}
	}
	return out, err
}

// parseSelector parses the flag --selector of the subcommands. An empty text selects all hosts.
func parseSelector(text string) (labels.Selector, error) {
	s, err := labels.Parse(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, reasonUsage, "%q is not a label selector; write it like rack=a", text).From(err)
	}
	return s, nil
}

// fingerprints returns the lines that scan prints for the user to compare host keys.
func fingerprints(keys []string) (string, error) {
	var out strings.Builder
	for _, k := range keys {
		print, err := remote.Fingerprint(k)
		if err != nil {
			return "", err
		}
		kind, _, _ := strings.Cut(k, " ")
		fmt.Fprintf(&out, "  %-20s %s\n", kind, print)
	}
	return out.String(), nil
}
