// Command cniconf runs beside flanneld: it waits for the file in which flanneld says which range of Pod addresses the
// node has been given, then writes the node's CNI configuration, and writes it again when the range changes. A
// configuration written before the range is known makes Pods fail for minutes.
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

// Pauses between two looks at the subnet file: before the first configuration, and after it.
const (
	impatient = 100 * time.Millisecond
	patient   = 5 * time.Second
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

// follow keeps the CNI file as the subnet file asks until a signal arrives.
func follow(subnetFile, cniFile string, end <-chan os.Signal) {
	wait, said := impatient, ""
	for {
		switch changed, err := update(subnetFile, cniFile); {
		case err == nil:
			wait, said = patient, ""
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
