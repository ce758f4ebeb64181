package remote

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons of the faults of [Pool.Connect].
const (
	// ReasonUnreachable means that the host or its jump host does not respond; the kind is Unreachable.
	ReasonUnreachable = "HostUnreachable"
	// ReasonBusy means that the host was not contacted, because calls to other hosts took all the time; the kind is Unreachable.
	ReasonBusy = "TooManyCalls"
	// ReasonHostKeyMismatch means that the host presented a key that is not pinned; the kind is Invalid.
	ReasonHostKeyMismatch = "HostKeyMismatch"
	// reasonAuthenticationFailed means that the host rejected the user or the key; the kind is Invalid.
	reasonAuthenticationFailed = "AuthenticationFailed"
	// reasonInvalidTarget means that the address, user, key or certificate cannot be used; the kind is Invalid.
	reasonInvalidTarget = "InvalidTarget"
	// reasonNotRoot means that the user is not root on the host and cannot become root; the kind is Invalid.
	reasonNotRoot = "NotRoot"
	// reasonNoCommonAlgorithm, reasonNoHostKey and reasonNoFileTransfer mean that the SSH server cannot be used; the kind is
	// Invalid.
	reasonNoCommonAlgorithm = "NoCommonAlgorithm"
	reasonNoHostKey         = "NoHostKey"
	reasonNoFileTransfer    = "NoFileTransfer"
)

const (
	// ReasonScriptFailed means that a script failed on the host, and ReasonFilesFailed that a file could not be read or written there,
	// for example because of a defective disk; the kind is Transient.
	ReasonScriptFailed = "HostScriptFailed"
	ReasonFilesFailed  = "HostFilesFailed"
)

// ConcernsConnection reports whether a fault is about the connection to a host, so that its message can contain the address, the
// user or the keys. Every call to a host can return such a fault, because a lost connection is opened again.
func ConcernsConnection(f *fault.Fault) bool {
	switch f.Reason {
	case ReasonUnreachable, ReasonHostKeyMismatch, reasonAuthenticationFailed, reasonInvalidTarget, reasonNotRoot, reasonNoCommonAlgorithm, reasonNoHostKey, reasonNoFileTransfer:
		return true
	}
	return false
}

const (
	defaultPort = 22
	// maxHostKeys limits the pinned keys of a host.
	maxHostKeys = 8
)

// Target describes how a host is reached. Package inventory creates it from an SSHHost, and `slipway hosts add` before
// there is one.
type Target struct {
	Address string
	// Port of the SSH server; 0: 22.
	Port int
	User string
	// PrivateKey is a private key in OpenSSH or PEM format. Certificate is an optional OpenSSH certificate for it.
	PrivateKey, Certificate []byte
	// HostKeys are the pinned keys, as lines of authorized_keys. At least one is required.
	HostKeys []string
	// Sudo runs everything through sudo.
	Sudo bool
	// Jump is the host through which the connection goes.
	Jump *Target
	// Namespace shares the slots of the pool with others. It is empty for a program with a single user.
	Namespace string `json:"-"`
	// ClaimID is the claim for which the host is changed. Scripts that change the host fail with reason
	// ReasonClaimedByAnother if it has the record of another claim. With "unrecorded", [Host.Reset] removes the node of
	// another installer from a host without a record.
	ClaimID string `json:"-"`
}

// userName matches the names of Unix users that are accepted.
var userName = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)

// hostName matches a DNS name. Addresses are parsed as such.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*\.?$`)

// address returns the address for a dialer.
func (t Target) address() string {
	port := t.Port
	if port == 0 {
		port = defaultPort
	}
	return net.JoinHostPort(t.Address, strconv.Itoa(port))
}

// key identifies a connection: the same host with other credentials is another connection. Fields that the JSON omits
// do not count, so that all claims of a host share its connection.
func (t Target) key() string {
	text, _ := json.Marshal(t) // cannot fail: strings, bytes and numbers only
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// check validates the parts of a target that are not keys. A jump host has no jump host of its own. [Pool.Connect] and
// [Pool.ScanHostKeys] call it.
func (t Target) check() error {
	switch {
	case net.ParseIP(t.Address) == nil && (len(t.Address) > 253 || !hostName.MatchString(t.Address)):
		return invalidTarget("%q is neither an IP address nor a DNS name", t.Address)
	case t.Port < 0 || t.Port > 65535:
		return invalidTarget("%d is not a port", t.Port)
	case !userName.MatchString(t.User):
		return invalidTarget("%q is not the name of a Unix user", t.User)
	case t.Jump == nil:
		return nil
	case t.Jump.Jump != nil:
		return invalidTarget("jump host %s has a jump host of its own, which is not supported", t.Jump.Address)
	}
	return t.Jump.check()
}

// signer returns the private key, with the certificate if there is one.
func (t Target) signer() (ssh.Signer, error) {
	key, err := ssh.ParsePrivateKey(t.PrivateKey)
	if err != nil {
		return nil, invalidTarget("the private key for host %s cannot be read; it must be an OpenSSH or PEM private key without a passphrase", t.Address).From(err)
	}
	if len(bytes.TrimSpace(t.Certificate)) == 0 {
		return key, nil
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey(t.Certificate)
	if err != nil {
		return nil, invalidTarget("the certificate for host %s cannot be read", t.Address).From(err)
	}
	certificate, ok := public.(*ssh.Certificate)
	if !ok {
		return nil, invalidTarget("the certificate for host %s is a public key without a signature of an authority", t.Address)
	}
	signer, err := ssh.NewCertSigner(certificate, key)
	if err != nil {
		return nil, invalidTarget("the certificate for host %s was issued for another private key", t.Address).From(err)
	}
	return signer, nil
}

// hostKeys parses the pinned keys.
func (t Target) hostKeys() ([]ssh.PublicKey, error) {
	if len(t.HostKeys) == 0 || len(t.HostKeys) > maxHostKeys {
		return nil, invalidTarget("host %s needs between 1 and %d pinned host keys", t.Address, maxHostKeys)
	}
	var out []ssh.PublicKey
	for _, line := range t.HostKeys {
		key, err := parseHostKey(line)
		if err != nil {
			return nil, invalidTarget("a pinned key of host %s cannot be read; write it like \"ssh-ed25519 AAAA…\", as in /etc/ssh/ssh_host_ed25519_key.pub", t.Address).From(err)
		}
		out = append(out, key)
	}
	return out, nil
}

func parseHostKey(line string) (ssh.PublicKey, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	return key, err
}

// Fingerprint returns the SHA-256 fingerprint of a host key in the form that ssh-keygen -l shows. The key is a line of
// authorized_keys. `slipway hosts` shows it.
func Fingerprint(hostKey string) (string, error) {
	key, err := parseHostKey(hostKey)
	if err != nil {
		return "", invalidTarget("%.40q is not a host key", hostKey).From(err)
	}
	return ssh.FingerprintSHA256(key), nil
}

// keyExchanges, ciphers and macs are the accepted algorithms. All have been in OpenSSH since version 7.
func keyExchanges() []string {
	return []string{ssh.KeyExchangeMLKEM768X25519, ssh.KeyExchangeCurve25519, "curve25519-sha256@libssh.org", ssh.KeyExchangeECDHP256, ssh.KeyExchangeECDHP384}
}

func ciphers() []string {
	return []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherChaCha20Poly1305, ssh.CipherAES256CTR}
}

func macs() []string { return []string{ssh.HMACSHA256ETM, ssh.HMACSHA512ETM} }

// hostKeyAlgorithms returns the accepted algorithms, those of the pinned keys first, so that a host with several keys
// presents a pinned one. The others remain, so that the fingerprint of an unexpected key can be reported.
func hostKeyAlgorithms(pinned []ssh.PublicKey) []string {
	byType := [][]string{{ssh.KeyAlgoED25519}, {ssh.KeyAlgoECDSA256}, {ssh.KeyAlgoECDSA384}, {ssh.KeyAlgoECDSA521}, {ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512}}
	types := []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSA}
	var first, rest []string
	for i, algorithms := range byType {
		if slices.ContainsFunc(pinned, func(k ssh.PublicKey) bool { return k.Type() == types[i] }) {
			first = append(first, algorithms...)
		} else {
			rest = append(rest, algorithms...)
		}
	}
	return append(first, rest...)
}

// keyMismatch describes a host key that is not pinned.
func keyMismatch(t Target, presented ssh.PublicKey, pinned []ssh.PublicKey) *fault.Fault {
	var prints []string
	for _, k := range pinned {
		prints = append(prints, ssh.FingerprintSHA256(k))
	}
	return fault.New(fault.Invalid, ReasonHostKeyMismatch,
		"host %s presented the %s key %s, but pinned are %s; if the host was reinstalled, compare the key on its console (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub) and pin it with \"slipway hosts update --host-key\", otherwise another machine responds at this address",
		t.Address, presented.Type(), ssh.FingerprintSHA256(presented), strings.Join(prints, ", "))
}

func invalidTarget(message string, args ...any) *fault.Fault {
	return fault.New(fault.Invalid, reasonInvalidTarget, message, args...)
}
