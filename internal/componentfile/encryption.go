package componentfile

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverinstall "k8s.io/apiserver/pkg/apis/apiserver/install"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	apiservervalidation "k8s.io/apiserver/pkg/apis/apiserver/validation"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
)

// keyLength is that of AES-256 and of XSalsa20, in bytes.
const keyLength = 32

// Keys encrypt what is in etcd. Each provider has a key of its own, by its name, so that another one can be chosen at any
// time and what was encrypted before stays readable.
type Keys map[string][]byte

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
func ParseKeys(data map[string][]byte) (Keys, error) {
	keys := Keys{}
	for _, p := range providers() {
		key := data[string(p)]
		if len(key) != keyLength {
			return nil, fmt.Errorf("it must have the keys secretbox, aesgcm and aescbc with %d bytes each, and %s has %d", keyLength, p, len(key))
		}
		keys[string(p)] = slices.Clone(key)
	}
	return keys, nil
}

// Fingerprint stands for the keys and tells nothing of them.
func (k Keys) Fingerprint() string {
	sum := sha256.New()
	for _, p := range providers() {
		sum.Write(k[string(p)]) // never fails
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// Encryption is the file that says what is encrypted when it is written (nil: nothing) and how all that ever was is read.
// The second entry is for resources that are encrypted no more: as plain text they are written, and whatever a key of ours
// opens is read.
func Encryption(e *hostedv1.Encryption, keys Keys) ([]byte, error) {
	file := apiserverv1.EncryptionConfiguration{TypeMeta: configKind("EncryptionConfiguration")}
	plain := apiserverv1.ProviderConfiguration{Identity: &apiserverv1.IdentityConfiguration{}}
	if e != nil {
		first := hostedv1.EncryptionSecretbox
		if e.Provider != "" {
			first = e.Provider
		}
		file.Resources = append(file.Resources, apiserverv1.ResourceConfiguration{
			Resources: encryptedResources(e), Providers: append(ciphers(keys, first), plain),
		})
	}
	file.Resources = append(file.Resources, apiserverv1.ResourceConfiguration{
		Resources: []string{"*.*"},
		Providers: append([]apiserverv1.ProviderConfiguration{plain}, ciphers(keys, hostedv1.EncryptionSecretbox)...),
	})
	return json.Marshal(file)
}

// encryptedResources are Secrets and what is named besides.
func encryptedResources(e *hostedv1.Encryption) []string {
	others := slices.DeleteFunc(slices.Clone(e.Resources), func(r string) bool { return r == "secrets" })
	return append([]string{"secrets"}, others...)
}

// ciphers are all providers with their keys, that which encrypts first.
func ciphers(keys Keys, first hostedv1.EncryptionProvider) []apiserverv1.ProviderConfiguration {
	var out []apiserverv1.ProviderConfiguration
	for _, p := range providers() {
		key := []apiserverv1.Key{{Name: "key1", Secret: base64.StdEncoding.EncodeToString(keys[string(p)])}}
		var c apiserverv1.ProviderConfiguration
		switch p {
		case hostedv1.EncryptionSecretbox:
			c.Secretbox = &apiserverv1.SecretboxConfiguration{Keys: key}
		case hostedv1.EncryptionAESGCM:
			c.AESGCM = &apiserverv1.AESConfiguration{Keys: key}
		case hostedv1.EncryptionAESCBC:
			c.AESCBC = &apiserverv1.AESConfiguration{Keys: key}
		}
		if p == first {
			out = slices.Insert(out, 0, c)
		} else {
			out = append(out, c)
		}
	}
	return out
}

func encryptionProblems(e *hostedv1.Encryption, path *field.Path) field.ErrorList {
	if p := e.Provider; p != "" && !slices.Contains(providers(), p) {
		return field.ErrorList{field.NotSupported(path.Child("provider"), p, providers())}
	}
	text, err := Encryption(e, blankKeys())
	config := &apiserver.EncryptionConfiguration{}
	if err == nil {
		err = decode(text, config, apiserverinstall.Install)
	}
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	errs := apiservervalidation.ValidateEncryptionConfiguration(config, false)
	for _, problem := range errs { // they name a place in the file
		problem.Field = path.Child("resources").String()
	}
	return errs
}
