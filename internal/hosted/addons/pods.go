package addons

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// podsRead limits the number of Pods of an add-on that are read.
	podsRead = 200
	// nodesNamed limits the number of Nodes in a message.
	nodesNamed = 3
)

// notReady lists the Nodes on which the Pods of an add-on are not ready or cannot pull their image, for the message of
// [Inspect]. The text begins with a colon. It is empty if there are no such Pods.
func notReady(ctx context.Context, client kubernetes.Interface, selector *metav1.LabelSelector, template corev1.PodTemplateSpec) (string, error) {
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: metav1.FormatLabelSelector(selector), Limit: podsRead,
	})
	if err != nil {
		return "", fmt.Errorf("reading the Pods of an add-on: %w", err)
	}
	var unready, imageless []string
	unscheduled := 0
	for _, p := range pods.Items {
		switch {
		case p.Spec.NodeName == "":
			unscheduled++
		case waitsForImage(p):
			imageless = append(imageless, p.Spec.NodeName)
		case !isReady(p):
			unready = append(unready, p.Spec.NodeName)
		}
	}
	var parts []string
	if len(imageless) > 0 && len(template.Spec.Containers) > 0 {
		parts = append(parts, nodeNames(imageless)+" without the image "+template.Spec.Containers[0].Image)
	}
	if len(unready) > 0 {
		parts = append(parts, "not ready on "+nodeNames(unready))
	}
	if unscheduled > 0 {
		parts = append(parts, fmt.Sprintf("%d Pods have no Node", unscheduled))
	}
	if len(parts) == 0 {
		return "", nil
	}
	return ": " + strings.Join(parts, "; "), nil
}

func waitsForImage(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		w := s.State.Waiting
		return w != nil && (w.Reason == "ErrImagePull" || w.Reason == "ImagePullBackOff" || w.Reason == "ErrImageNeverPull" || w.Reason == "InvalidImageName")
	})
}

func isReady(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// nodeNames names the first Nodes and counts the remaining ones.
func nodeNames(nodes []string) string {
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	word := "Node "
	if len(nodes) > 1 {
		word = "Nodes "
	}
	if more := len(nodes) - nodesNamed; more > 0 {
		return fmt.Sprintf("%s%s and %d more", word, strings.Join(nodes[:nodesNamed], ", "), more)
	}
	return word + strings.Join(nodes, ", ")
}
