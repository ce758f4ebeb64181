package componentconfig

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

// keyLength is the key length of AES-256 and XSalsa20, in bytes.
const keyLength = 32

// Entries of the Secret with the keys, in addition to one entry for each provider. Secrets of existing clusters contain
// them, so they must not change.
const (
	// nameKey holds the key name that prefixes all data encrypted with the keys. It defaults to firstName.
	nameKey, firstName = "name", "key1"
	// formerPrefix prefixes the entries of the previous keys and of their name.
	formerPrefix = "former-"
	// rewrittenKey holds the fingerprint of the keys with which all stored data was rewritten, followed by
	// markSeparator and a random suffix that identifies this rewrite.
	rewrittenKey  = "rewritten"
	markSeparator = "/"
)

// maxMark limits the length of a mark, because the Secret can be edited by hand.
const maxMark = 64

// keyName matches key names that kube-apiserver can parse from the prefix of encrypted data.
var keyName = regexp.MustCompile(`^[a-z0-9][-a-z0-9]{0,62}$`)

// Keys encrypt the data in etcd of a hosted control plane. There is one key for each provider, so that the provider can
// be changed at any time and existing data remains readable. The entry "name" distinguishes a set of keys from others.
// [Encryption] writes them into the configuration of kube-apiserver.
type Keys map[string][]byte

// KeySet holds the encryption keys of a hosted control plane. The HostedControlPlane controller creates and checks
// them; `slipway rotate encryption CLUSTER` replaces them.
type KeySet struct {
	// Current encrypts and decrypts. Former only decrypts, and may be nil.
	Current, Former Keys
	// Rewritten marks that all data encrypted with other keys was rewritten with Current. The mark is
	// different after each rewrite. Empty means unknown.
	Rewritten string
}

// providers returns the encryption providers in order of preference. [KeySet.Fingerprint] hashes the keys in this
// order, and existing Secrets have a key for each provider. Therefore the list must not change.
func providers() []hostedv1.EncryptionProvider {
	return []hostedv1.EncryptionProvider{hostedv1.EncryptionSecretbox, hostedv1.EncryptionAESGCM, hostedv1.EncryptionAESCBC}
}

// NewKeys returns random keys. The HostedControlPlane controller stores them in a new Secret, and [KeySet.Rotated]
// replaces keys with them.
func NewKeys() Keys {
	keys := blankKeys()
	for _, key := range keys {
		_, _ = rand.Read(key) // never fails
	}
	return keys
}

// blankKeys returns zero keys, for validating a configuration without real key material.
func blankKeys() Keys {
	keys := Keys{}
	for _, p := range providers() {
		keys[string(p)] = make([]byte, keyLength)
	}
	return keys
}

// ParseKeys returns the keys in the data of a Secret. It ignores other entries. Packages controlplane, hosted and
// operate/encryptionkeys call it.
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
			return KeySet{}, fmt.Errorf("the current and the previous keys have the same name, %s", set.Current.name())
		}
	}
	mark := string(data[rewrittenKey])
	if of, _, _ := strings.Cut(mark, markSeparator); !hasFormer && of == set.Current.fingerprint() && len(mark) <= maxMark {
		set.Rewritten = mark
	}
	return set, nil
}

// parse returns the keys whose entries have the prefix.
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

// Data returns the keys as the data of a Secret. Packages hosted and operate/encryptionkeys store it.
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

// Rotated returns a set with new current keys and the present keys as former keys. Package operate/encryptionkeys calls
// it.
func (k KeySet) Rotated() KeySet {
	next := NewKeys()
	next[nameKey] = []byte("key-" + next.fingerprint()[:12])
	return KeySet{Current: next, Former: k.Current}
}

// WithoutFormer returns the set without its former keys, for use after all data was rewritten with the current
// keys. Package operate/encryptionkeys calls it.
func (k KeySet) WithoutFormer() KeySet {
	once := make([]byte, 8)
	_, _ = rand.Read(once) // never fails
	return KeySet{Current: k.Current, Rewritten: k.Current.fingerprint() + markSeparator + hex.EncodeToString(once)}
}

// Fingerprint identifies the keys without revealing them. The data of a control plane is recorded with it, so the
// computation must not change. The fingerprints of current and former keys are separated by a comma.
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
	if name := k.name(); name != firstName { // the name is part of the prefix by which encrypted data is read
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

// keysFor returns the keys of a provider. The first one encrypts. [Encryption] calls it.
func (k KeySet) keysFor(p hostedv1.EncryptionProvider) []apiserverv1.Key {
	var out []apiserverv1.Key
	for _, keys := range []Keys{k.Current, k.Former} {
		if keys != nil {
			out = append(out, apiserverv1.Key{Name: keys.name(), Secret: base64.StdEncoding.EncodeToString(keys[string(p)])})
		}
	}
	return out
}

// KeysSuffice reports whether the given keys can decrypt all data that may have been encrypted with the used keys, both
// as fingerprints. If all data was rewritten, the current given keys suffice, provided that they are among the used
// ones, because only these can have encrypted the rewritten data. Package processconfig calls it before data is opened,
// and the HostedControlPlane controller for the keys in the Secret.
func KeysSuffice(used, given string, rewritten bool) bool {
	have, need := strings.Split(given, ","), strings.Split(used, ",")
	if rewritten && slices.Contains(need, have[0]) {
		return true
	}
	return !slices.ContainsFunc(need, func(one string) bool { return !slices.Contains(have, one) })
}
