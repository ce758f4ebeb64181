package configfile

import (
	"cmp"
	"path"
	"strings"

	"github.com/distribution/reference"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Image says what of an image is replaced; what is empty stays.
type Image struct {
	// Repository in the place of everything before the last slash.
	Repository string `json:"repository,omitempty"`
	// Name in the place of what follows the last slash.
	Name string `json:"name,omitempty"`
	Tag  string `json:"tag,omitempty"`
}

// allImages is the key of the overrides for every component.
const allImages = "all"

// AlterImage is an image of a component after the overrides: those of the image come before those of the component, and
// these before those for all, field by field.
func (f *File) AlterImage(component, image string) (string, error) {
	if len(f.Images) == 0 {
		return image, nil
	}
	named, err := reference.ParseNamed(image)
	if err != nil {
		return "", fault.New(fault.Invalid, "InvalidImage", "the image %q of %s cannot be read (%v); overrides of images need complete names", image, component, err).From(err)
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
