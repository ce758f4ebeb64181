package componentfile

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
)

// keyLength is that of AES-256 and of XSalsa20, in bytes.
const keyLength = 32

// Names in a Secret of keys, beside those of the providers.
const (
	// nameKey is what stands in front of all that the keys encrypt; firstName where it is not there.
	nameKey, firstName = "name", "key1"
	// formerPrefix is in front of the keys of before, and of their name.
	formerPrefix = "former-"
	// rewrittenKey has the fingerprint of the keys with which everything is encrypted that ever was, and after markSeparator what tells this
	// rewriting from every other.
	rewrittenKey  = "rewritten"
	markSeparator = "/"
)

// maxMark is how long a mark can be: a person may have written it.
const maxMark = 64

// keyName is one that kube-apiserver finds again in front of what is encrypted.
var keyName = regexp.MustCompile(`^[a-z0-9][-a-z0-9]{0,62}$`)

// Keys encrypt what is in etcd. Each provider has a key of its own, by its name, so that another one can be chosen at any
// time and what was encrypted before stays readable. The entry "name" tells them from others.
type Keys map[string][]byte

// KeySet are the keys of a control plane.
type KeySet struct {
	// Current encrypt and decrypt; Former, which may be nil, decrypt.
	Current, Former Keys
	// Rewritten marks that everything which was encrypted with other keys was written once more with Current, each time by another text;
	// empty: that is not known.
	Rewritten string
}

// providers that keys are for, by preference.
func providers() []hostedv1.EncryptionProvider {
	return []hostedv1.EncryptionProvider{hostedv1.EncryptionSecretbox, hostedv1.EncryptionAESGCM, hostedv1.EncryptionAESCBC}
}

// NewKeys returns random keys.
func NewKeys() Keys {
	keys := blankKeys()
	for _, key := range keys {
		_, _ = rand.Read(key) // never fails
	}
	return keys
}

// blankKeys returns keys that encrypt nothing: for the check of a configuration, which is no place for real ones.
func blankKeys() Keys {
	keys := Keys{}
	for _, p := range providers() {
		keys[string(p)] = make([]byte, keyLength)
	}
	return keys
}

// ParseKeys returns the keys of a Secret, and nothing else that is in it.
func ParseKeys(data map[string][]byte) (KeySet, error) {
	set := KeySet{}
	var err error
	if set.Current, err = parse(data, ""); err != nil {
		return KeySet{}, err
	}
	hasFormer := slices.ContainsFunc(providers(), func(p hostedv1.EncryptionProvider) bool { return data[formerPrefix+string(p)] != nil })
	if hasFormer {
		if set.Former, err = parse(data, formerPrefix); err != nil {
			return KeySet{}, err
		}
		if set.Former.name() == set.Current.name() {
			return KeySet{}, fmt.Errorf("its keys and those of before have the same name, %s", set.Current.name())
		}
	}
	mark := string(data[rewrittenKey])
	if of, _, _ := strings.Cut(mark, markSeparator); !hasFormer && of == set.Current.fingerprint() && len(mark) <= maxMark {
		set.Rewritten = mark
	}
	return set, nil
}

// parse returns the keys whose names in the data begin with the prefix.
func parse(data map[string][]byte, prefix string) (Keys, error) {
	keys := Keys{}
	for _, p := range providers() {
		key := data[prefix+string(p)]
		if len(key) != keyLength {
			return nil, fmt.Errorf("it must have the keys %[1]ssecretbox, %[1]saesgcm and %[1]saescbc with %[2]d bytes each, and %[1]s%[3]s has %[4]d", prefix, keyLength, p, len(key))
		}
		keys[string(p)] = slices.Clone(key)
	}
	if name, ok := data[prefix+nameKey]; ok {
		if !keyName.Match(name) {
			return nil, fmt.Errorf("the name %q of its keys must be of lower-case letters, digits and hyphens", name)
		}
		keys[nameKey] = slices.Clone(name)
	}
	return keys, nil
}

// Data is the content of a Secret with the keys.
func (k KeySet) Data() map[string][]byte {
	data := map[string][]byte{}
	for name, key := range k.Current {
		data[name] = key
	}
	for name, key := range k.Former {
		data[formerPrefix+name] = key
	}
	if k.Rewritten != "" {
		data[rewrittenKey] = []byte(k.Rewritten)
	}
	return data
}

// Rotated puts new keys before the current ones, which become those of before.
func (k KeySet) Rotated() KeySet {
	next := NewKeys()
	next[nameKey] = []byte("key-" + next.fingerprint()[:12])
	return KeySet{Current: next, Former: k.Current}
}

// Settled leaves the current keys alone, once everything is encrypted with them.
func (k KeySet) Settled() KeySet {
	once := make([]byte, 8)
	_, _ = rand.Read(once) // never fails
	return KeySet{Current: k.Current, Rewritten: k.Current.fingerprint() + markSeparator + hex.EncodeToString(once)}
}

// Fingerprint stands for the keys and tells nothing of them: for each of the two, with a comma between them.
func (k KeySet) Fingerprint() string {
	if k.Former == nil {
		return k.Current.fingerprint()
	}
	return k.Current.fingerprint() + "," + k.Former.fingerprint()
}

func (k Keys) fingerprint() string {
	sum := sha256.New()
	for _, p := range providers() {
		sum.Write(k[string(p)]) // never fails
	}
	if name := k.name(); name != firstName { // what is encrypted is found by it, too
		sum.Write([]byte(name))
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

func (k Keys) name() string {
	if name := string(k[nameKey]); name != "" {
		return name
	}
	return firstName
}

// of are the keys of a provider, that which encrypts first.
func (k KeySet) of(p hostedv1.EncryptionProvider) []apiserverv1.Key {
	var out []apiserverv1.Key
	for _, keys := range []Keys{k.Current, k.Former} {
		if keys != nil {
			out = append(out, apiserverv1.Key{Name: keys.name(), Secret: base64.StdEncoding.EncodeToString(keys[string(p)])})
		}
	}
	return out
}

// OpenedBy reports whether keys open what may be encrypted with those that a fingerprint stands for. Those of which everything was
// rewritten need the current ones alone, if they were among them: else nothing can have been.
func OpenedBy(used, given string, rewritten bool) bool {
	have, need := strings.Split(given, ","), strings.Split(used, ",")
	if rewritten && slices.Contains(need, have[0]) {
		return true
	}
	return !slices.ContainsFunc(need, func(one string) bool { return !slices.Contains(have, one) })
}
