// Names of people and places from many parts of the world, for the values of practice worlds.

export const GIVEN_NAMES = `
Aaliyah Aarav Aaron Abdul Abebe Abena Abigail Adam Adaeze Adriana Agnes Ahmed Aicha Aidan Aiko Aino Aisha Akira Akua Alan
Alba Albert Alejandro Alexei Alfonso Ali Alice Alina Alma Alvaro Amadou Amal Amara Amelia Amina Amir Amit Amos Ana
Anastasia Anders Andrea Andrei Andrew Angela Anika Anita Anja Anna Annika Anouk Antonio Anwar April Arash Ariel Arjun
Armando Arne Arthur Arturo Arvid Asa Asha Ashok Astrid Aurora Ayana Ayesha Ayumi Aziz Babak Baptiste Barbara Bashir
Basil Beatriz Bella Benjamin Berit Bernard Bertha Bianca Bilal Birgit Bjorn Blanca Boris Bram Brenda Brian Bridget Bruno
Camila Carla Carlos Carmen Caroline Catalina Cecilia Cedric Celeste Chandra Charles Chen Chiara Chidi Chinedu Chloe
Christina Ciara Clara Claude Clement Clara-Lou Colin Connor Cora Cristian Cyril Daichi Daisy Dalia Damian Daniel Daniela
Darius Darya David Deborah Deepa Delia Denis Derya Desmond Devi Diana Diego Dilnoza Dina Dinesh Dmitri Dolores Dominic
Donna Dora Doris Duarte Dunja Dylan Ebba Edgar Edith Edmund Eduardo Edwin Efua Eileen Einar Eirik Elena Eleni Elias Elif
Eliot Elisa Ella Ellen Elodie Elsa Emeka Emil Emilia Emma Emre Enrique Enzo Eric Erika Erin Ernesto Esi Esperanza Esra
Esther Ethan Eugenia Eva Evelyn Ewa Fabian Fadi Farah Farid Fatima Fatou Felipe Felix Femi Fernanda Finn Fiona Flavia
Florence Francesca Francisco Franz Freya Frida Gabriel Galina Gareth Gemma Georg Georgia Gerda Giada Gianni Gideon Gilda
Giorgos Giovanni Gita Gloria Goran Grace Greta Guillermo Gunnar Gustavo Gwen Habib Hadiya Hakan Hala Hamza Hana Hanna Hans
Harald Haruka Harumi Hassan Heidi Helena Henrik Herman Hilda Hiroshi Hugo Huong Ibrahim Ida Idris Ife Ignacio Igor Ilse
Imani Imran Ines Ingrid Irene Irina Iris Isaac Isabel Ishaan Ismail Istvan Ivan Ivana Jabari Jack Jacqueline Jae Jakob
Jamal James Jamila Jan Jana Janet Jarek Jasmine Javier Jean Jelena Jennifer Jens Jerome Jesper Jia Jiho Jin Joanna Joao
Johan John Jolene Jonas Jorge Josefa Joseph Joyce Juan Judith Julia Julian Jun Jurgen Kaan Kadir Kai Kalani Kamal Kamila
Karan Karen Karim Karin Karl Kasia Katarina Kate Kavita Keiko Kelechi Kemal Kenji Kenneth Kerstin Kevin Khadija Khalid
Kim Kiran Kirsten Klara Klaus Kofi Koji Krishna Kwame Kyle Laila Lars Latifa Laura Layla Leah Lech Leif Leila Lena Leo
Leon Leonor Leticia Levi Lian Liam Lidia Lina Ling Linh Lionel Lisa Liv Livia Logan Lola Lorenzo Louis Lucas Lucia Luis
Luka Lukas Luna Lydia Maarten Mabel Madina Maeve Magda Magnus Mahmoud Mai Maja Makoto Malik Malin Manuel Marcel Marco
Margaret Maria Mariam Marie Marina Mario Marisol Mark Marta Martin Mateo Mats Matthew Maurice Maya Mehmet Mei Mercedes
Mia Michael Miguel Mihai Mikael Mila Milan Milena Min Mina Miriam Miroslav Mohamed Moira Mona Monica Morgan Moses Muhammad
Musa Mustafa Nadia Nadine Naira Nami Naomi Nasser Natalia Nathan Neema Neil Nelson Nia Nicolas Nikhil Nikolai Nils Nina
Nneka Noah Noor Nora Norman Nuria Nyambura Odile Oksana Olaf Oleg Olga Oliver Olivia Omar Ondrej Orla Oscar Osman Otto
Pablo Padma Palesa Paloma Paolo Pascal Patricia Paul Paula Pavel Pedro Peggy Penelope Per Petra Philip Pia Pierre Pilar
Piotr Prakash Priya Quentin Quinn Rachel Radu Rafael Rahul Raisa Raj Ramon Rania Rashid Raul Rebecca Reiko Renata Ricardo
Richard Rina Rita Robert Rocio Roger Rohan Roland Roman Rosa Rosalind Roxana Ruben Ruth Ryan Sabine Sadia Said Salma
Salome Samir Samuel Sandra Sanjay Santiago Sara Satoshi Scarlett Sean Sebastian Selma Serena Sergio Seth Shadi Shanti
Sharon Shirin Sibusiso Sigrid Silas Silvia Simon Simone Sipho Sofia Solange Solveig Sonia Soren Stella Stefan Sunita Susan
Suzanne Sven Svetlana Sylvie Tadeo Takumi Tamar Tamara Tanvir Tara Tariq Tatiana Tendai Teresa Thabo Thandi Theo Theresa
Thomas Tiago Tilda Timothy Tobias Tomas Torsten Tova Trang Tuan Tuomas Ulla Uma Umar Ursula Usha Valentina Vanessa Vasil
Vera Veronica Victor Vidya Vijay Viktor Vincent Violet Virginia Vivian Vlad Wafa Walter Wanda Wanjiru Wei Wendy Werner
William Wilma Wojtek Xavier Ximena Xin Yael Yan Yara Yasmin Yelena Yaw Yinka Yohan Yolanda Yosef Yuki Yuri Yusuf Yvonne
Zahra Zainab Zara Zeynep Zhen Zoe Zofia Zoltan Zuri Zuzana`;

export const SURNAMES = `
Abara Abbas Abe Abreu Achebe Acosta Adams Adeyemi Afolabi Agarwal Aguilar Ahmadi Akhtar Aksoy Alvarez Amador Amari Amsel
Anand Andersen Ando Andrade Antonov Appiah Aragon Araujo Arslan Asante Ashby Aslan Atkins Aydin Azevedo Babic Bailey
Bakker Balogun Banda Banerjee Barbosa Barnes Barros Basu Batista Bauer Baxter Bayram Becker Begum Bell Beltran Benali
Bennett Berg Bergstrom Bernal Bertrand Bhatt Bianchi Bishop Blake Blanc Blanchet Bogdanov Bondar Borges Bose Botha Boucher
Bouchard Bowen Boyle Bradley Brandt Braun Brennan Briggs Brito Brown Bruno Burke Burns Byrne Cabrera Cardoso Carey
Carlsson Caron Carter Caruso Castillo Castro Cavalli Cervantes Chambers Chan Chandra Chang Chaudhry Chavez Chevalier Chikere
Chopra Christensen Cisse Clarke Cohen Coleman Collins Conti Conway Cooper Correia Cortez Costa Coulibaly Craig Cruz Cunha
Dahl Dalton Danso Darwish Das Davies Dawson DeLuca Deng Desai Diallo Diaz Dikmen Diop Dixon Dlamini Dogan Domingo Donovan
Doyle Drake Dubois Duffy Dumont Duran Dutta Eberhardt Edwards Egan Eide Ekström Elbaz Ellis Emanuel Engel Erdem Eriksen
Escobar Esposito Estrada Evans Eze Fabre Faber Fagan Falk Farah Farrell Faulkner Ferrari Ferreira Fischer Fitzgerald
Fleming Flores Fofana Fontaine Forsberg Foster Fournier Franco Fraser Freeman Friedman Fuentes Fujita Gallagher Gallo
Galvan Gamboa Garcia Gardner Garnier Gauthier Geiger Gerard Ghosh Gibson Gill Girard Gomez Goncalves Gonzalez Gordon
Goto Graham Grant Greco Griffin Grigoryan Gruber Guerrero Guillen Gupta Gutierrez Haas Haddad Hagen Hakimi Hall Halonen
Hamada Hamdan Hansen Harada Harper Harris Hartmann Hasegawa Hashimi Hawkins Hayashi Heikkinen Henriksen Herrera Hidalgo
Hirsch Hoang Hoffmann Holm Holt Horvat Horvath Hosseini Howard Huang Hughes Hussain Huynh Ibarra Igwe Ikeda Imai Inoue
Ionescu Ishikawa Ito Ivanov Iversen Jackson Jaeger Jain Jankowski Jansen Jarvis Jensen Jimenez Johansson Jones Jovanovic
Joshi Kaba Kahn Kamara Kang Kaplan Kapoor Karlsson Kato Kaufmann Kaur Kawasaki Kaya Keita Keller Kelly Kenny Khalil Khan
Khoury Kiplagat Kimura King Kirk Klein Kobayashi Koch Kone Konig Kovac Kovacs Kowalski Kramer Krasniqi Krause Kravchenko
Kruger Kuhn Kumar Kuznetsov Kwon Lacroix Lam Lambert Lange Larsen Laurent Lavoie Lebedev Leclerc Lee Lehtinen Leroy Lewis
Li Lim Lindgren Lombardi Lopes Lopez Lowe Lucero Lund Lynch Macedo Machado MacLeod Madsen Mahlangu Maier Malik Mancini
Mansour Marchand Marino Markovic Marques Martinez Mason Matsuda Mayer Mbeki McBride McCarthy McKenna Medina Mehta Meier
Mendes Mendoza Menon Mensah Mercier Meyer Mikkelsen Miller Miranda Mishra Mitchell Mitrovic Mohr Molina Monteiro Morales
Moreau Moretti Mori Morita Morozov Moser Moyo Mueller Mukherjee Munoz Murphy Murray Mwangi Nagy Naidoo Nair Nakamura
Nascimento Navarro Ndiaye Neumann Newton Ng Ngcobo Nguyen Nielsen Nikolaev Nishida Njoroge Nolan Nordin Novak Nowak
Nunes Nwosu Nyberg O'Brien O'Connor O'Neill Obi Ochieng Odhiambo Oduya Ogawa Okafor Okamoto Okonkwo Oliveira Olsen Omondi
Onyango Orlov Ortega Osman Otieno Ozturk Pacheco Palmer Pandey Papadakis Park Parker Pascual Patel Pavlov Pawlak Peeters
Pellegrini Pereira Perez Perrin Persson Peters Petrenko Petrov Pham Phillips Pinto Popescu Popov Porter Potgieter Powell
Prieto Qureshi Quiroga Rahman Ramirez Ramos Rao Rasmussen Raut Reddy Reid Reyes Ribeiro Ricci Richter Rinaldi Rivera
Roberts Robles Rocha Rojas Romano Romero Rosenberg Rossi Rousseau Roy Rubio Ruiz Russo Ryan Saito Sakamoto Salas Salazar
Salvador Sanchez Sandberg Sano Santos Sanz Sasaki Sato Savage Schmidt Schneider Schreiber Schulz Schwarz Scott Sen
Serrano Shah Sharma Shaw Shevchenko Shimizu Silva Simmons Singh Skinner Smirnov Soares Sokolov Solberg Sommer Soto Sousa
Spencer Stavros Stein Stewart Stoica Stone Suarez Sullivan Suzuki Svensson Szabo Takeda Tanaka Tang Tavares Taylor Tembo
Teixeira Thapa Thomsen Toledo Torres Toth Toure Tran Tremblay Tucker Turner Ueda Uribe Usman Vaccaro Valdez Valencia
Vargas Vasquez Vega Velez Verma Vidal Vieira Villa Virtanen Vogel Volkov Vu Wagner Walker Wallace Walsh Wang Ward Watanabe
Weaver Weber Weiss Werner West White Wilson Winkler Wolf Wong Wright Wu Yamada Yang Yeo Yilmaz Yoon Young Yusuf Zapata
Zhang Zhou Ziegler Zimmermann Zulu`;

export const PLACES = `
Aarhus Abidjan Abuja Accra Adana Adelaide Agadir Agra Aleppo Algiers Alicante Almaty Amman Amritsar Anchorage Ankara
Antalya Antwerp Arequipa Arusha Asmara Astana Asuncion Athens Auckland Augsburg Austin Baghdad Baku Bamako Bandung
Bangalore Bangkok Banjul Barcelona Bari Basel Basra Batumi Beirut Belem Belfast Belgrade Belmopan Bergen Berlin Bern
Bilbao Birmingham Bishkek Bogota Bologna Bordeaux Boston Brasilia Brasov Bremen Brescia Brest Brighton Brisbane Bristol Brno
Bruges Brussels Bucharest Budapest Bursa Busan Cadiz Cairo Calgary Cali Callao Canberra Cancun Caracas Cardiff Cartagena
Casablanca Catania Cebu Chennai Chicago Chisinau Chittagong Christchurch Cluj Cologne Colombo Conakry Copenhagen Cordoba
Cork Cotonou Curitiba Cusco Dakar Dalian Damascus Darwin Davao Debrecen Delft Denver Detroit Dhaka Dili Djibouti Dnipro
Dodoma Doha Dortmund Douala Dresden Dubai Dublin Dubrovnik Duluth Dundee Dunedin Durban Dushanbe Edinburgh Eindhoven
Eldoret Entebbe Erfurt Essen Faro Fes Fiji Florence Fortaleza Frankfurt Freetown Fukuoka Gaborone Galway Gdansk Geneva
Genoa Ghent Gibraltar Glasgow Goa Gothenburg Granada Graz Grenoble Guadalajara Guayaquil Haifa Hakodate Halifax Hamburg
Hanoi Harare Harbin Havana Helsinki Hobart Honolulu Houston Hyderabad Ibadan Ibiza Incheon Innsbruck Ipswich Isfahan
Islamabad Istanbul Izmir Jaipur Jakarta Jeddah Jerusalem Johannesburg Juba Kabul Kampala Kandy Kano Karachi Kathmandu Kazan
Kerman Kharkiv Khartoum Kigali Kingston Kinshasa Kisumu Kobe Kochi Kolkata Kosice Krakow Kumasi Kyoto Lagos Lahore Lausanne
Leeds Leicester Leipzig Leon Lhasa Libreville Liege Lille Lilongwe Lima Limerick Linz Lisbon Liverpool Ljubljana Lodz
London Luanda Lublin Lucerne Lund Lusaka Luxor Lviv Lyon Macau Madrid Malaga Malmo Managua Manaus Mandalay Manila Maputo
Marrakesh Marseille Maseru Mecca Medan Medellin Melbourne Memphis Merida Miami Milan Minsk Mombasa Monaco Monrovia
Montevideo Montreal Moscow Mosul Multan Mumbai Munich Murcia Muscat Nagasaki Nagoya Nairobi Namur Nancy Nantes Naples
Narvik Nassau Ndola Niamey Nice Nicosia Nottingham Nuuk Odense Odessa Oran Osaka Oslo Ottawa Oulu Oxford Padua Palermo
Palma Panama Paris Patna Penang Perth Perugia Phoenix Pisa Plovdiv Plymouth Porto Portland Potosi Poznan Prague Pretoria
Puebla Pune Quebec Quito Rabat Ravenna Recife Reims Rennes Reykjavik Riga Rijeka Riyadh Rome Rosario Rostock Rotterdam
Rouen Salamanca Salerno Salvador Salzburg Samara Samarkand Santander Santiago Sapporo Sarajevo Seattle Segovia Sendai Seoul
Seville Shanghai Sheffield Shenzhen Shiraz Sibiu Siena Singapore Skopje Sofia Split Stockholm Strasbourg Stuttgart Suva
Sydney Tabriz Taipei Tallinn Tampere Tangier Tashkent Tbilisi Tehran Thessaloniki Timisoara Tirana Tokyo Toledo Toronto
Toulouse Trieste Tripoli Tromso Tunis Turin Turku Uppsala Utrecht Valencia Valletta Valparaiso Vancouver Varna Venice Verona
Vienna Vigo Vilnius Warsaw Wellington Windhoek Winnipeg Wroclaw Wuhan Xalapa Yangon Yaounde Yerevan Yokohama York Zagreb
Zanzibar Zaragoza Zurich`;
