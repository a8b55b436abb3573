// Probe is what the test pods run: `serve`, `get URL`, `resolve NAME`, `say TEXT`, `cat PATH` or `touch PATH`.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sort"
	"strings"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fail("usage: probe serve | get URL | resolve NAME | say TEXT | cat PATH | touch PATH")
	}
	argument := strings.Join(os.Args[2:], " ")
	switch os.Args[1] {
	case "serve":
		serve()
	case "get":
		get(argument)
	case "resolve":
		resolve(argument)
	case "say":
		fmt.Println(argument)
	case "cat":
		contents, err := os.ReadFile(argument)
		if err != nil {
			fail(err)
		}
		fmt.Print(string(contents))
	case "touch":
		if err := os.WriteFile(argument, nil, 0o644); err != nil {
			fail(err)
		}
	default:
		fail("unknown command", os.Args[1])
	}
}

func serve() {
	name, _ := os.Hostname()
	fmt.Println("serving as", name)
	http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) { fmt.Fprint(answer, name) })
	fail(http.ListenAndServe(":8080", nil))
}

func get(url string) {
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		fail(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		fail(err)
	}
	fmt.Print(string(body))
}

func resolve(name string) {
	addresses, err := net.LookupHost(name)
	if err != nil {
		fail(err)
	}
	sort.Strings(addresses)
	fmt.Print(strings.Join(addresses, " "))
}

func fail(what ...any) {
	fmt.Fprintln(os.Stderr, what...)
	os.Exit(1)
}
