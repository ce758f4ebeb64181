package componentconfig

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverinstall "k8s.io/apiserver/pkg/apis/apiserver/install"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	apiservervalidation "k8s.io/apiserver/pkg/apis/apiserver/validation"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
)

// Encryption returns the encryption configuration of a hosted control plane's kube-apiserver, which package
// controlplane writes before it starts: the resources that are encrypted on write (none if e is nil) and the providers
// that decrypt existing data. Its last entry covers resources that are no longer encrypted: they are written as plain
// text, and data that was encrypted with one of the keys can still be read.
func Encryption(e *hostedv1.Encryption, keys KeySet) ([]byte, error) {
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

// encryptedResources returns Secrets followed by the additional resources of the spec.
func encryptedResources(e *hostedv1.Encryption) []string {
	others := slices.DeleteFunc(slices.Clone(e.Resources), func(r string) bool { return r == "secrets" })
	return append([]string{"secrets"}, others...)
}

// ciphers returns all encryption providers with their keys. The first entry encrypts.
func ciphers(keys KeySet, first hostedv1.EncryptionProvider) []apiserverv1.ProviderConfiguration {
	var out []apiserverv1.ProviderConfiguration
	for _, p := range providers() {
		of := keys.keysFor(p)
		var c apiserverv1.ProviderConfiguration
		switch p {
		case hostedv1.EncryptionSecretbox:
			c.Secretbox = &apiserverv1.SecretboxConfiguration{Keys: of}
		case hostedv1.EncryptionAESGCM:
			c.AESGCM = &apiserverv1.AESConfiguration{Keys: of}
		case hostedv1.EncryptionAESCBC:
			c.AESCBC = &apiserverv1.AESConfiguration{Keys: of}
		}
		if p == first {
			out = slices.Insert(out, 0, c)
		} else {
			out = append(out, c)
		}
	}
	return out
}

// encryptionProblems validates the encoded encryption configuration, for [Problems].
func encryptionProblems(e *hostedv1.Encryption, path *field.Path) field.ErrorList {
	if p := e.Provider; p != "" && !slices.Contains(providers(), p) {
		return field.ErrorList{field.NotSupported(path.Child("provider"), p, providers())}
	}
	text, err := Encryption(e, KeySet{Current: blankKeys()})
	config := &apiserver.EncryptionConfiguration{}
	if err == nil {
		err = decode(text, config, apiserverinstall.Install)
	}
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	errs := apiservervalidation.ValidateEncryptionConfiguration(config, false)
	for _, problem := range errs { // errors carry paths in the file, not in the object
		problem.Field = path.Child("resources").String()
	}
	return errs
}
