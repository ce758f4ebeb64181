package repository

import (
	"cmp"
	"path"
	"strings"

	"github.com/distribution/reference"

	"github.com/slipwayhq/slipway/internal/fault"
)

// ImageOverride overrides parts of an image reference. Empty fields are left unchanged. [LoadConfig] reads it from the
// key images.
type ImageOverride struct {
	// Repository replaces everything before the last slash.
	Repository string `json:"repository,omitempty"`
	// Name replaces the part after the last slash.
	Name string `json:"name,omitempty"`
	Tag  string `json:"tag,omitempty"`
}

// allImages is the key of overrides for all components.
const allImages = "all"

// AlterImage applies the overrides of the configuration file to an image of a component. For each field, an override of
// the image takes precedence over one of the component, and that over one for all components. Commands that load
// components pass it as [ComponentOptions.AlterImage].
func (f *ConfigFile) AlterImage(component, image string) (string, error) {
	if len(f.Images) == 0 {
		return image, nil
	}
	named, err := reference.ParseNamed(image)
	if err != nil {
		return "", fault.New(fault.Invalid, "InvalidImage", "the image %q of %s is invalid (%v); image overrides require complete image names", image, component, err).From(err)
	}
	repository, name := path.Split(named.Name())
	one, some, all := f.Images[component+"/"+name], f.Images[component], f.Images[allImages]
	out := strings.TrimSuffix(cmp.Or(one.Repository, some.Repository, all.Repository, repository), "/") +
		"/" + cmp.Or(one.Name, some.Name, all.Name, name)
	tag := cmp.Or(one.Tag, some.Tag, all.Tag)
	if tagged, ok := named.(reference.Tagged); ok && tag == "" {
		tag = tagged.Tag()
	}
	if tag != "" {
		out += ":" + tag
	}
	if digested, ok := named.(reference.Digested); ok {
		out += "@" + digested.Digest().String()
	}
	return out, nil
}
