package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/clusterctl/move"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons of faults; all are Invalid.
const (
	// reasonDamaged is the reason when the content of an archive is invalid.
	reasonDamaged = "DamagedBackup"
	// reasonEncrypted is the reason when the Secrets of an archive cannot be decrypted.
	reasonEncrypted = "EncryptedBackup"
	// reasonFile is the reason when an archive file cannot be written or read.
	reasonFile = "BackupFile"
	// reasonCannotRestore is the reason when a management cluster does not support the objects of a backup.
	reasonCannotRestore = "CannotRestore"
)

// format is the version of the archive format. A change that an older `slipway restore` cannot read must increase it.
const format = 1

// maxArchiveSize is the maximum total size of the files in an archive in bytes.
const maxArchiveSize = 4 << 30

// Names in an archive. Existing archives have them, so they must not change without another format.
const (
	sumsFile    = "SHA256SUMS"
	infoFile    = "backup.json"
	objectsDir  = "objects/"
	secretsDir  = "secrets/"
	secretsFile = "secrets.tar.age"
)

// Info describes a backup. It is the file backup.json, so the JSON names must stay. [Take] fills it in; `slipway
// backup` and `slipway restore` display it.
type Info struct {
	// Format is the version of the archive format.
	Format int `json:"format"`
	// CreatedAt is the time at which the objects were read.
	CreatedAt time.Time `json:"createdAt"`
	// Version is the version of slipway.
	Version string `json:"slipwayVersion"`
	// Source is the UID of the management cluster's Namespace kube-system.
	Source string `json:"source"`
	// Namespace is the namespace of the objects; empty for all.
	Namespace string `json:"namespace,omitempty"`
	// Clusters, Objects and Secrets count the Clusters, all objects, and the Secrets among them.
	Clusters int `json:"clusters"`
	Objects  int `json:"objects"`
	Secrets  int `json:"secrets"`
	// Encrypted reports whether the Secrets are encrypted.
	Encrypted bool `json:"encrypted"`
	// Providers are the installed providers, without built-in ones.
	Providers []provider.Installed `json:"providers,omitempty"`
}

// Archive is a backup. [Take] creates it from a management cluster, and [Open] from a file.
type Archive struct {
	Info    Info
	Objects []*unstructured.Unstructured
}

// Write writes the archive. With recipients, its Secrets are encrypted for each of them. [Archive.Save] calls it.
func (a Archive) Write(w io.Writer, to []age.Recipient) error {
	content, err := a.content(to)
	if err != nil {
		return err
	}
	content[sumsFile] = sums(content)
	zip := gzip.NewWriter(w)
	if err := a.writeTar(zip, content); err != nil {
		return err
	}
	return zip.Close()
}

// content returns the files of the archive without their checksums.
func (a Archive) content(to []age.Recipient) (map[string][]byte, error) {
	var plain, secrets []*unstructured.Unstructured
	for _, o := range a.Objects {
		if isSecret(o) {
			secrets = append(secrets, o)
		} else {
			plain = append(plain, o)
		}
	}
	out, err := encode(objectsDir, plain)
	if err != nil {
		return nil, err
	}
	hidden, err := encode(secretsDir, secrets)
	if err != nil {
		return nil, err
	}
	if len(to) == 0 {
		maps.Copy(out, hidden)
	} else if out[secretsFile], err = a.encrypt(hidden, to); err != nil {
		return nil, err
	}
	info := a.Info
	info.Format, info.Encrypted = format, len(to) > 0
	out[infoFile], err = json.MarshalIndent(info, "", "  ")
	return out, err
}

func encode(dir string, objects []*unstructured.Unstructured) (map[string][]byte, error) {
	encoded, err := move.EncodeFile(objects)
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte, len(encoded))
	for name, data := range encoded {
		out[dir+name] = data
	}
	return out, nil
}

func (a Archive) encrypt(content map[string][]byte, to []age.Recipient) ([]byte, error) {
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to...)
	if err != nil {
		return nil, fmt.Errorf("encrypting the Secrets: %w", err)
	}
	if err := a.writeTar(w, content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encrypting the Secrets: %w", err)
	}
	return out.Bytes(), nil
}

// writeTar writes the files sorted by name, with upper case first.
func (a Archive) writeTar(w io.Writer, content map[string][]byte) error {
	t := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(content)) {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content[name])), Mode: 0o600, ModTime: a.Info.CreatedAt.Truncate(time.Second)}
		if err := t.WriteHeader(h); err != nil {
			return fmt.Errorf("writing the archive: %w", err)
		}
		if _, err := t.Write(content[name]); err != nil {
			return fmt.Errorf("writing the archive: %w", err)
		}
	}
	return t.Close()
}

// readArchive reads an archive. The identities decrypt its Secrets if they are encrypted. [Open] calls it.
func readArchive(r io.Reader, identities []age.Identity) (Archive, error) {
	info, content, err := readVerified(r)
	if err != nil {
		return Archive{}, err
	}
	if info.Encrypted {
		secrets, err := decrypt(content[secretsFile], identities)
		if err != nil {
			return Archive{}, err
		}
		delete(content, secretsFile)
		maps.Copy(content, secrets)
	}
	a := Archive{Info: info}
	for _, name := range slices.Sorted(maps.Keys(content)) {
		isPlain, isHidden := strings.HasPrefix(name, objectsDir), strings.HasPrefix(name, secretsDir)
		if !isPlain && !isHidden {
			return Archive{}, damaged("%s does not belong into it", name)
		}
		o, err := move.DecodeFile(name, content[name])
		if err != nil {
			return Archive{}, err
		}
		if isSecret(o) != isHidden {
			return Archive{}, damaged("%s is not where it belongs", name)
		}
		a.Objects = append(a.Objects, o)
	}
	if len(a.Objects) != info.Objects {
		return Archive{}, damaged("it has %d objects in the place of %d", len(a.Objects), info.Objects)
	}
	return a, nil
}

// readVerified reads the files of an archive and verifies their checksums.
func readVerified(r io.Reader) (Info, map[string][]byte, error) {
	var info Info
	zip, err := gzip.NewReader(r)
	if err != nil {
		return info, nil, damaged("it is no archive: %v", err)
	}
	content, err := readTar(zip)
	if err != nil {
		return info, nil, err
	}
	if err := verifyChecksums(content); err != nil {
		return info, nil, err
	}
	if err := json.Unmarshal(content[infoFile], &info); err != nil {
		return info, nil, damaged("%s cannot be read: %v", infoFile, err)
	}
	if info.Format != format {
		return info, nil, fault.New(fault.Invalid, reasonDamaged,
			"the backup was written by slipway %s in the format %d, and this version reads %d: use that version; nothing was created", info.Version, info.Format, format)
	}
	delete(content, sumsFile)
	delete(content, infoFile)
	return info, content, nil
}

// readTar reads all files of a tar archive, up to its end.
func readTar(r io.Reader) (map[string][]byte, error) {
	out := map[string][]byte{}
	left := int64(maxArchiveSize)
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, damaged("%v", err)
		}
		if left -= h.Size; h.Typeflag != tar.TypeReg || left < 0 {
			return nil, damaged("%s is no regular file, or too large", h.Name)
		}
		if _, twice := out[h.Name]; twice {
			return nil, damaged("%s is there twice", h.Name)
		}
		if out[h.Name], err = io.ReadAll(t); err != nil {
			return nil, damaged("%s: %v", h.Name, err)
		}
	}
	if n, err := io.Copy(io.Discard, io.LimitReader(r, 1<<20)); err != nil || n == 1<<20 { // the checksum of the compressed data is at the end
		return nil, damaged("its end is missing: %v", err)
	}
	return out, nil
}

func decrypt(data []byte, identities []age.Identity) (map[string][]byte, error) {
	if len(identities) == 0 {
		return nil, fault.New(fault.Invalid, reasonEncrypted, "the Secrets of this backup are encrypted: name a file with an age identity with --identity; nothing was created")
	}
	r, err := age.Decrypt(bytes.NewReader(data), identities...)
	var none *age.NoIdentityMatchError
	if errors.As(err, &none) {
		return nil, fault.New(fault.Invalid, reasonEncrypted, "the Secrets of this backup are encrypted for others than the identities of --identity; nothing was created").From(err)
	}
	if err != nil {
		return nil, damaged("its Secrets cannot be decrypted: %v", err)
	}
	return readTar(r)
}

func damaged(form string, args ...any) error {
	return fault.New(fault.Invalid, reasonDamaged, "the backup is damaged: %s; nothing was created", fmt.Sprintf(form, args...))
}

func isSecret(o *unstructured.Unstructured) bool {
	k := o.GroupVersionKind()
	return k.Group == "" && k.Kind == "Secret"
}
