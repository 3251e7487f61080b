// Shows the address under which the page was called in the examples.
for (const example of document.querySelectorAll("pre")) {
  example.textContent = example.textContent.replaceAll("127.0.0.1:8080", location.host);
}
