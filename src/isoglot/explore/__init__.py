"""`isoglot explore`: a local web app to try models, with Gradio.

`session` holds models and texts, `app` puts one tab for each of its modules on a page, `server`
serves the page. A tab's module has functions without Gradio first, then `build_tab(session)`, which
creates the components. Text from files reaches HTML through `markup` alone.
"""
