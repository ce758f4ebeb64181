// Command cniconf runs beside flanneld: it waits for the file in which flanneld writes the Pod CIDR of the node, then
// writes the node's CNI configuration, and updates it when the Pod CIDR changes. A configuration written before the Pod
// CIDR is known makes Pods fail for minutes.
//
// Usage: cniconf SUBNET_FILE CNI_FILE
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Intervals for reading the subnet file: before the first configuration, and after it.
const (
	initialInterval = 100 * time.Millisecond
	updateInterval  = 5 * time.Second
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: cniconf SUBNET_FILE CNI_FILE")
		os.Exit(2)
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	follow(os.Args[1], os.Args[2], end)
}

// follow updates the CNI file to match the subnet file until a signal arrives.
func follow(subnetFile, cniFile string, end <-chan os.Signal) {
	wait, said := initialInterval, ""
	for {
		switch changed, err := update(subnetFile, cniFile); {
		case err == nil:
			wait, said = updateInterval, ""
			if changed {
				fmt.Println("wrote", cniFile)
			}
		case err.Error() != said:
			said = err.Error()
			fmt.Fprintln(os.Stderr, said)
		}
		select {
		case <-end:
			return
		case <-time.After(wait):
		}
	}
}
