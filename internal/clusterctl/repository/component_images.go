package repository

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/fault"
)

// podSpec returns the path of the Pod spec in objects of a kind; nil if they have none.
func podSpec(kind string) []string {
	switch kind {
	case "Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "ReplicationController", "Job":
		return []string{"spec", "template", "spec"}
	case "CronJob":
		return []string{"spec", "jobTemplate", "spec", "template", "spec"}
	case "Pod":
		return []string{"spec"}
	}
	return nil
}

// images overrides the images of all containers, and sets c.Images. [newComponents] calls it.
func (c *Components) images(alter func(component, image string) (string, error)) error {
	if alter == nil {
		alter = func(_, image string) (string, error) { return image, nil }
	}
	found, err := Images(c.Objects, func(image string) (string, error) { return alter(c.Provider.Label(), image) })
	c.Images = found
	return err
}

// Images changes the image of every container, and returns the resulting images, sorted and without duplicates.
// [newComponents] calls it for the manifest of a provider, and package certificates for the manifest of cert-manager,
// so that the images setting of clusterctl's configuration applies to both. podSpec may get more kinds.
func Images(objects []*unstructured.Unstructured, alter func(image string) (string, error)) ([]string, error) {
	var out []string
	for _, o := range objects {
		path := podSpec(o.GetKind())
		if path == nil {
			continue
		}
		spec, _, err := unstructured.NestedFieldNoCopy(o.Object, path...)
		if err != nil {
			return nil, fault.New(fault.Invalid, ReasonComponents, "%s %s has an invalid Pod specification (%v); correct the file, or override it", o.GetKind(), o.GetName(), err)
		}
		pod, _ := spec.(map[string]any)
		for _, list := range []string{"initContainers", "containers"} {
			each(pod, list, func(container map[string]any) {
				image, _ := container["image"].(string)
				if image == "" || err != nil {
					return
				}
				if image, err = alter(image); err == nil {
					container["image"] = image
					out = append(out, image)
				}
			})
		}
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
