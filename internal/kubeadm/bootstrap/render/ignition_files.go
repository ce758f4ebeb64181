package render

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/flatcar/ignition/config/v2_3/types"
	"github.com/vincent-petithory/dataurl"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

const (
	rootFilesystem = "root"
	defaultMode    = 0o644
)

// addFiles adds the files of the payload to an Ignition configuration, including the script that runs kubeadm.
// [ignitionConfig] calls it as its last step. A file of the payload thus replaces a generated one with the same path.
func addFiles(config *types.Config, p Payload) error {
	for _, f := range p.Files {
		if f.Path == markerPath { // the script creates that directory
			continue
		}
		file, err := fileOf(f)
		if err != nil {
			return err
		}
		if !file.Append { // Ignition does not guarantee an order, so the last file of a path replaces earlier ones
			config.Storage.Files = slices.DeleteFunc(config.Storage.Files, func(o types.File) bool { return o.Path == file.Path })
		}
		config.Storage.Files = append(config.Storage.Files, file)
	}
	return nil
}

// fileOf converts a file, whose content Ignition stores as a data URL.
func fileOf(f File) (types.File, error) {
	content := f.Content
	switch f.Encoding {
	case "":
	case bootstrapv1.Base64:
		var err error
		if content, err = base64.StdEncoding.DecodeString(strings.TrimSpace(string(f.Content))); err != nil {
			return types.File{}, ignitionInvalid("the content of file %s is not base64, although its encoding is base64; correct one of them", f.Path).From(err)
		}
	default:
		return types.File{}, ignitionInvalid("the encoding %s of file %s is not supported with the format ignition; use base64", f.Encoding, f.Path)
	}
	mode := int64(defaultMode)
	if f.Permissions != "" {
		var err error
		if mode, err = strconv.ParseInt(f.Permissions, 8, 32); err != nil {
			return types.File{}, ignitionInvalid("the permissions %q of file %s are not octal digits; correct them", f.Permissions, f.Path).From(err)
		}
	}
	bits := int(mode)
	user, group, _ := strings.Cut(f.Owner, ":")
	return types.File{
		Node:          types.Node{Filesystem: rootFilesystem, Path: f.Path, User: userOf(user), Group: groupOf(group)},
		FileEmbedded1: types.FileEmbedded1{Append: f.Append, Mode: &bits, Contents: types.FileContents{Source: dataurl.EncodeBytes(content)}},
	}, nil
}

// userOf returns a user by number or name, or nil for root.
func userOf(name string) *types.NodeUser {
	if name == "" {
		return nil
	}
	if id, err := strconv.Atoi(name); err == nil {
		return &types.NodeUser{ID: &id}
	}
	return &types.NodeUser{Name: name}
}

func groupOf(name string) *types.NodeGroup {
	if u := userOf(name); u != nil {
		return &types.NodeGroup{ID: u.ID, Name: u.Name}
	}
	return nil
}
