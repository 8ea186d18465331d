// Command kindconfig reads a kind configuration with kind's own loader and validator, so that kind-config.yaml is
// proven on machines where kind itself cannot run. The module is named below kind's own path because the loader is
// internal to it.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/kind/pkg/internal/apis/config/encoding"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: kindconfig FILE")
		os.Exit(2)
	}
	config, err := encoding.Load(os.Args[1])
	if err == nil {
		err = config.Validate()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: kind refuses this configuration: %v\n", os.Args[1], err)
		os.Exit(1)
	}
	for _, node := range config.Nodes {
		fmt.Println(node.Role)
	}
}
